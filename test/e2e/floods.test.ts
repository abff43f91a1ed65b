import { describe, expect, test } from "vitest";
import { floodDescriptors } from "../../lab/faults/floods.ts";
import { runPods } from "../../lab/pods.ts";
import { NO_REAL_NODE, start } from "../lab/real-node.ts";
import { cpuSecondsOf } from "./cpu-time.ts";
import { AT_ONCE, expectGone, heal } from "./healed-node.ts";
import { UNPRIVILEGED } from "./impostor.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

/** Reads the target of every open file of the user's processes, once. */
const READ_ALL = `
import os, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    if os.stat(f"/proc/{pid}").st_uid != int(sys.argv[1]): continue
    for file in os.scandir(f"/proc/{pid}/fd"): os.readlink(file.path)
`;

describe.skipIf(NO_REAL_NODE !== undefined)("processes of a user that are named like the runtime", () => {
  test("none of their 300,000 open files is read", async () => {
    const node = await start();
    const pods = await runPods(node, 2);
    await node.powerCut();
    await node.powerOn();
    await floodDescriptors(node, { name: "containerd", user: UNPRIVILEGED, descriptors: 300_000 });

    const scan = await cpuSecondsOf(node, UNGHOST, "scan", "-o", "json", "--timeout", "30s", ...AT_ONCE);
    const readAll = await cpuSecondsOf(node, "python3", "-c", READ_ALL, String(UNPRIVILEGED));
    const { code, report } = await heal(node);

    expect(reportOf(scan.result).findings.map(({ class: of }) => of)).toEqual(["dead-after-crash", "dead-after-crash"]);
    expect(scan.seconds).toBeLessThan(readAll.seconds / 4);
    expect([code, report.remaining]).toEqual([0, []]);
    await expectGone(node, ...pods);
  });
});
