import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ensureRoom } from "../../../src/heal/state/durable-files.ts";

const program = join(import.meta.dirname, "fixtures", "on-small-disk.ts");
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-disk-"));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Runs a scenario in its own mount namespace, with a file system of one mebibyte at `root`. */
function onSmallDisk(scenario: string, mountOptions: string, cache = ""): unknown {
  const script = `mount -t tmpfs -o ${mountOptions} tmpfs "$1" && exec "$2" "$3" "$4" "$1" "$5"`;
  const args = [
    "-m",
    "--propagation",
    "private",
    "sh",
    "-c",
    script,
    "sh",
    root,
    process.execPath,
    program,
    scenario,
    cache,
  ];
  return JSON.parse(execFileSync("unshare", args, { encoding: "utf8" }));
}

function canMount(): boolean {
  try {
    execFileSync("unshare", ["-m", "true"], { stdio: "ignore" });
    return process.getuid?.() === 0;
  } catch {
    // Not permitted to create a namespace, or not Linux.
    return false;
  }
}

describe("ensureRoom", () => {
  test("accepts an ordinary disk and leaves no file on it", async () => {
    expect(await ensureRoom(root)).toEqual({ ok: true, value: undefined });
    rmSync(root, { recursive: true });
    expect((await ensureRoom(root)).ok).toBe(false);
    root = mkdtempSync(join(tmpdir(), "unghost-disk-"));
  });

  describe.runIf(canMount())("on a disk of one mebibyte", () => {
    const SMALL = "size=1m,mode=0700";

    test("accepts a disk with enough free space", () => {
      expect(onSmallDisk("room", SMALL)).toEqual({ first: { ok: true }, left: [] });
    });

    test.each([
      ["nearly-full", SMALL, /less than 2048 KiB are free/],
      ["full", SMALL, /the disk is full \(ENOSPC\)/],
      ["read-only", `${SMALL},ro`, /cannot be written, the file system is read-only \(EROFS\)/],
      ["without-inodes", `${SMALL},nr_inodes=1`, /no inode is left/],
    ])("refuses a disk that is %s", (scenario, mountOptions, sentence) => {
      expect(onSmallDisk(scenario, mountOptions)).toMatchObject({
        ok: false,
        refusal: { message: expect.stringMatching(sentence) as unknown },
      });
    });

    test("opens no session on a full disk", () => {
      expect(onSmallDisk("session-full", SMALL)).toMatchObject({ ok: false });
    });

    test("reports a disk that is too full for the state directory as full", () => {
      expect(onSmallDisk("session-without-inodes", `${SMALL},nr_inodes=1`)).toMatchObject({
        ok: false,
        refusal: {
          kind: "disk",
          message: expect.stringMatching(/is full or nearly so \(the disk is full \(ENOSPC\)\)/) as unknown,
          next: expect.stringMatching(/^Free some space there/) as unknown,
        },
      });
    });

    test("loses no file when the disk fills up during a run", () => {
      const cache = mkdtempSync(join(tmpdir(), "unghost-cache-"));
      const path = join(cache, "cache");
      const content = "content ".repeat(4096);
      writeFileSync(path, content);
      try {
        const result = onSmallDisk("full-meanwhile", SMALL, path) as { outcomes: string[]; states: string[] };

        expect(result).toMatchObject({ there: true, problems: [] });
        expect(result.outcomes).toContain("refused");
        expect(result.outcomes).not.toContain("healed");
        expect(readFileSync(path, "utf8")).toBe(content);
      } finally {
        rmSync(cache, { recursive: true });
      }
    });
  });
});
