import { execFileSync } from "node:child_process";
import { mkdirSync, readlinkSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readNetns } from "../../src/node/netns.ts";
import { fill, makePipe, tempDir, writeRawName } from "./temp-dir.ts";

function canMount(): boolean {
  try {
    execFileSync("unshare", ["--mount", "true"], { stdio: "ignore" });
    return true;
  } catch {
    // Not root, or no such tool: mounts cannot be tested.
    return false;
  }
}

describe("readNetns", () => {
  test("a file without a namespace has no inode", async () => {
    const root = fill(tempDir(), { "run/netns/cni-1234": "" });

    expect(await readNetns({ root, dir: "/run/netns" })).toMatchObject({
      status: "read",
      value: [{ path: "/run/netns/cni-1234", name: "cni-1234", inode: undefined, modifiedAt: expect.any(Date) }],
      oddities: [],
    });
  });

  test.skipIf(!canMount())("a mounted namespace has its inode", () => {
    const root = fill(tempDir(), { "run/netns/cni-1": "", "run/netns/cni-2": "" });
    const reader = new URL("../../src/node/netns.ts", import.meta.url).href;
    const program = `
      import { readNetns } from ${JSON.stringify(reader)};
      const source = await readNetns({ root: ${JSON.stringify(root)}, dir: "/run/netns" });
      console.log(source.value.map(({ name, inode }) => name + " " + inode).sort().join("\\n"));`;

    // Mounted in a mount namespace that ends with the program.
    const output = execFileSync("unshare", [
      "--mount",
      "sh",
      "-c",
      'mount --bind /proc/self/ns/net "$0" && exec "$1" --input-type=module -e "$2"',
      `${root}/run/netns/cni-1`,
      process.execPath,
      program,
    ]);

    const inode = /\d+/.exec(readlinkSync("/proc/self/ns/net"))?.[0];
    expect(output.toString().trim().split("\n")).toEqual([`cni-1 ${inode}`, "cni-2 undefined"]);
  });

  test("skips links, FIFOs, directories and names with control characters", async () => {
    const root = fill(tempDir(), { "run/netns/\u001b[2J": "" });
    symlinkSync("/proc/self/ns/net", `${root}/run/netns/link`);
    makePipe(`${root}/run/netns/pipe`);
    mkdirSync(`${root}/run/netns/dir`);
    writeRawName(`${root}/run/netns`, [0xff]);

    const source = await readNetns({ root, dir: "/run/netns" });

    expect(source).toMatchObject({ status: "read", value: [] });
    expect(source.status === "read" && source.oddities).toHaveLength(5);
  });

  test("a missing directory is absent: no namespace was created since boot", async () => {
    expect(await readNetns({ root: tempDir(), dir: "/run/netns" })).toMatchObject({ status: "absent" });
  });
});
