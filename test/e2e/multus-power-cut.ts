import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import type { LabPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { startStubApi } from "../../lab/stub-api.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, HANG_GUARD_MS, play } from "../lab/real-node.ts";
import { runAgain } from "./as-kubelet.ts";
import { cniFiles } from "./healed-node.ts";
import { kubeletKnows, runKubelet } from "./scanned-node.ts";

/** A power cut with pods on thin multus; then a substitute of kubelet fails to restart each of them. */
export async function powerCutUnderThinMultus(node: LabNode, count: number): Promise<readonly LabPod[]> {
  await useMultus(node);
  const pods: LabPod[] = [];
  for (let index = 0; index < count; index += 1) {
    pods.push(await runMultusPod(node, { name: `pod-${index}`, containers: [{ name: "main" }] }));
  }
  kubeletKnows(node, ...pods);
  await node.powerCut();
  await node.powerOn();
  await startStubApi(node);
  await runKubelet(node);
  for (const { ref } of pods) play((stop) => runAgain(node, ref, stop));
  await until("kubelet has failed to stop each of them", HANG_GUARD_MS, () => {
    const log = readFileSync(node.logPath, "utf8");
    return pods.every(({ sandboxId }) => log.includes(`StopPodSandbox for \\"${sandboxId}\\" failed`)) || undefined;
  });
  return pods;
}

/** Every pod has a Ready sandbox of a later attempt. */
export async function expectAllRunAgain(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  await until("every pod runs again", HANG_GUARD_MS, async () => {
    const ready = { state: { state: PodSandboxState.SANDBOX_READY } };
    const uids = new Set((await node.cri.listPodSandbox(ready, CALL)).map(({ metadata }) => metadata?.uid));
    return pods.every(({ ref }) => uids.has(ref.uid)) || undefined;
  });
}

/** What kubelet does with old sandboxes later: stop and remove. Needs no help of unghost any more. */
export async function expectKubeletCanRemove(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  for (const { sandboxId } of pods) {
    await node.cri.stopPodSandbox(sandboxId, CALL);
    await node.cri.removePodSandbox(sandboxId, CALL);
  }
}

/** No file, lease or marker of a sandbox that is gone. */
export function expectNoTrace(node: LabNode, pods: readonly LabPod[]): void {
  const files = cniFiles(node);
  for (const { sandboxId } of pods) expect(files.filter((file) => file.includes(sandboxId))).toEqual([]);
}
