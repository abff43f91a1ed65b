import { describe, expect, test } from "vitest";
import { hasMountOf } from "../../src/node/multus-daemon.ts";
import { fill, tempDir } from "./temp-dir.ts";

const NODE =
  "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n30 22 98:0 /sub\\040dir /run/a\\134b rw - xfs /dev/vdb rw\n";

/** A /proc of regular files: the node's own mounts, and those of process 20. */
function rootWith(mountinfo: string | undefined): string {
  return fill(tempDir(), {
    "proc/1/mountinfo": NODE,
    ...(mountinfo === undefined ? {} : { "proc/20/mountinfo": mountinfo }),
  });
}

describe("whether a process has a directory of the node mounted", () => {
  test.each<readonly [string, string | undefined, string, boolean]>([
    ["the directory itself", "40 39 8:1 /run/multus /host rw - ext4 /dev/sda1 rw", "/run/multus", true],
    ["a directory above it", "40 39 8:1 /run /host/run rw master:2 - ext4 /dev/sda1 rw", "/run/multus", true],
    ["another directory", "40 39 8:1 /var /var rw - ext4 /dev/sda1 rw", "/run/multus", false],
    ["a longer name", "40 39 8:1 /run/multus-2 /host rw - ext4 /dev/sda1 rw", "/run/multus", false],
    ["another file system", "40 39 0:5 /run/multus /host rw - tmpfs none rw", "/run/multus", false],
    [
      "a mount below the root with spaces in its path",
      "40 39 98:0 /sub\\040dir/x /x rw - xfs /dev/vdb rw",
      "/run/a\\b/x",
      true,
    ],
    ["nothing that can be read", undefined, "/run/multus", false],
  ])("%s", (_what, mountinfo, dir, expected) => {
    expect(hasMountOf(rootWith(mountinfo), 20, dir)).toBe(expected);
  });
});
