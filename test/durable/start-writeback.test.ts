import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startWriteback } from "../../src/durable/sync-entries.ts";
import { scratchDir } from "./scratch-dir.ts";

describe("startWriteback", () => {
  test("changes no file, follows no link, does not block on a FIFO, and skips missing files", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "lease"), "id");
    symlinkSync(scratchDir(), join(dir, "link"));
    execFileSync("mkfifo", [join(dir, "fifo")]);

    await startWriteback(dir, ["lease", "link", "fifo", "gone"]);
    await startWriteback(join(dir, "link"), ["lease"]);
    await startWriteback(join(dir, "gone"), ["lease"]);

    expect(readFileSync(join(dir, "lease"), "utf8")).toBe("id");
  });
});
