import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { youngFiles } from "../../src/durable/waiting-files.ts";
import { scratchDir } from "./scratch-dir.ts";

describe("youngFiles", () => {
  test("lists files that changed within a minute, without links and directories", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "young"), "");
    mkdirSync(join(dir, "network"));
    symlinkSync("/etc/hostname", join(dir, "link"));

    expect(await youngFiles(dir)).toEqual({ kind: "listed", names: ["young"] });
    expect(await youngFiles(dir, Date.now() + 60_000)).toEqual({ kind: "listed", names: [] });
  });

  test("treats a file from the future as recent", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "ahead"), "");
    const nextYear = Date.now() / 1000 + 365 * 86_400;
    utimesSync(join(dir, "ahead"), nextYear, nextYear);

    expect(await youngFiles(dir, Date.now() + 60_000)).toEqual({ kind: "listed", names: ["ahead"] });
  });

  test("reads 20,000 files without blocking the event loop", async () => {
    const dir = scratchDir();
    for (let count = 0; count < 20_000; count++) writeFileSync(join(dir, `10.88.${count >> 8}.${count & 255}`), "");
    let turns = 0;
    const timer = setInterval(() => turns++, 0);

    const young = await youngFiles(dir);

    clearInterval(timer);
    expect(young).toMatchObject({ kind: "listed", names: { length: 20_000 } });
    expect(turns).toBeGreaterThan(0);
  });

  test("reports why a directory cannot be listed, and finds nothing in a missing one", async () => {
    const dir = scratchDir();
    writeFileSync(join(dir, "file"), "");

    expect(await youngFiles(join(dir, "file"))).toMatchObject({ kind: "refused" });
    expect(await youngFiles(join(dir, "gone"))).toEqual({ kind: "listed", names: [] });
  });
});
