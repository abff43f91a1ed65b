import { describe, expect, test } from "vitest";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import { runPod } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, cniFiles, listedIds, unghostIn } from "./healed-node.ts";

describe.skipIf(NO_REAL_NODE !== undefined)("heal without room for its journal", { timeout: HANG_GUARD_MS }, () => {
  test.each([
    ["too small", "size=1m", "is full or nearly so"],
    ["read-only", "size=32m,ro", "read-only"],
    ["without inodes", "size=32m,nr_inodes=3", "no inode is left|ENOSPC|no space"],
  ])("refuses before any change: a file system that is %s", async (_name, options, words) => {
    const node = await start();
    const pod = await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn();
    await emptyResultCache(node, pod);
    await node.check([
      "sh",
      "-c",
      `mkdir -p /var/lib/unghost && mount -t tmpfs -o ${options},mode=0700 tmpfs /var/lib/unghost`,
    ]);
    const before = [await listedIds(node), cniFiles(node)];

    const { code, stderr } = await unghostIn(node, ["heal", "--yes", ...AT_ONCE]);

    expect([code, stderr]).toEqual([3, expect.stringMatching(new RegExp(words, "i"))]);
    expect(stderr).toMatch(/^Nothing was changed: .*(?:--state-dir|Free space)/);
    expect(stderr.match(/Nothing was changed/g)).toHaveLength(1);
    expect([await listedIds(node), cniFiles(node)]).toEqual(before);
  });
});
