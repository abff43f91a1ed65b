import { describe, expect } from "vitest";
import { type LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { type LabPod, runPod } from "../../lab/pods.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectGone, heal } from "./healed-node.ts";
import { AT_ONCE } from "./scanned-node.ts";
import { UNGHOST } from "./unghost.ts";

const APP = [{ name: "app" }, { name: "sidecar" }];

describe.skipIf(NO_REAL_NODE !== undefined)("shims that do not answer", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("are named, and hide neither each other nor a ghost", async (runtime) => {
    const node = await start({ runtime });
    const ghost = await runPod(node, { name: "ghost" });
    await node.powerCut();
    await node.powerOn();
    const hung = [
      await runPod(node, { name: "hung-0", containers: APP }),
      await runPod(node, { name: "hung-1", containers: APP }),
    ];
    for (const pod of hung) await signalShim(node, pod, "STOP");

    const withGhost = await scanAsUsersDo(node);
    expect(withGhost.findings).toEqual([`dead-after-crash/${ghost.sandboxId}`]);
    await heal(node);
    await expectGone(node, ghost);

    const { verdict, findings, problems } = await scanAsUsersDo(node);
    expect([verdict, findings]).toEqual(["unknown", []]);
    expect(problems.toSorted()).toEqual(
      hung.map(({ ref }) => expect.stringContaining(`shim of ${ref.namespace}/${ref.name}: it did not answer`)),
    );

    for (const pod of hung) await signalShim(node, pod, "CONT");
    expect(await scanAsUsersDo(node)).toEqual({ verdict: "healthy", findings: [], problems: [] });
  });
});

/** With the default timeout. */
async function scanAsUsersDo(node: LabNode) {
  const { stdout } = await node.exec([UNGHOST, "scan", "-o", "json", ...AT_ONCE]);
  const { verdict, findings, problems } = JSON.parse(stdout);
  return {
    verdict,
    findings: findings.map(({ id }: { readonly id: string }) => id),
    problems: problems.map(({ problem }: { readonly problem: string }) => problem),
  };
}

async function signalShim(node: LabNode, { sandboxId }: LabPod, signal: "STOP" | "CONT"): Promise<void> {
  const shim = processesOf(node).find(({ command }) => command.includes("-id") && command.includes(sandboxId));
  if (shim === undefined) throw new Error(`${sandboxId} has no shim`);
  await node.check(["kill", `-${signal}`, String(shim.pid)]);
}
