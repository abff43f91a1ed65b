import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { syncEntries } from "../../src/durable/sync-entries.ts";
import { scratchDir } from "./scratch-dir.ts";

describe("syncEntries", () => {
  test("syncs regular files and returns directories", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "lease"), "id");
    writeFileSync(join(dir, "empty"), "");
    mkdirSync(join(dir, "network"));

    const { synced, directories, failed, isGone } = await syncEntries(dir, ["lease", "empty", "network"]);

    expect([synced.toSorted(), directories, failed, isGone]).toEqual([["empty", "lease"], ["network"], [], false]);
  });

  test("follows no link, does not block on a FIFO, and skips missing files", async () => {
    const dir = scratchDir();
    const outside = join(scratchDir(), "outside");
    writeFileSync(outside, "secret");
    symlinkSync(outside, join(dir, "link"));
    symlinkSync(scratchDir(), join(dir, "link-to-directory"));
    execFileSync("mkfifo", [join(dir, "fifo")]);

    const { synced, directories, failed } = await syncEntries(dir, [
      "link",
      "link-to-directory",
      "fifo",
      "gone",
      "a/b",
    ]);

    expect([synced, directories, failed]).toEqual([[], [], []]);
  });

  test("skips a file that no plugin could have written", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "huge"), "");
    truncateSync(join(dir, "huge"), 1024 ** 3);

    expect((await syncEntries(dir, ["huge"])).synced).toEqual([]);
  });

  test("treats a missing directory, or a link at its path, as gone", async () => {
    const dir = scratchDir();
    symlinkSync(scratchDir(), join(dir, "results"));
    writeFileSync(join(dir, "file"), "");

    for (const name of ["results", "missing", "file"]) {
      expect((await syncEntries(join(dir, name), ["lease"])).isGone).toBe(true);
    }
  });
});
