import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import type { PodRef } from "../../src/node/types/ids.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, HANG_GUARD_MS } from "../lab/real-node.ts";
import { type Healed, heal } from "./healed-node.ts";

/**
 * Heals beside a substitute of kubelet. Fails immediately with what was not healed, because kubelet would wait for it.
 */
export function healBeside<T>(node: LabNode, flags: readonly string[], kubelet: Promise<T>): Promise<[Healed, T]> {
  const healing = heal(node, flags).then((healed) => {
    const outcomes = new Set(healed.report.actions?.map(({ outcome }) => outcome));
    expect(outcomes, JSON.stringify(healed.report)).toEqual(new Set(["healed"]));
    expect([healed.code, healed.report.remaining]).toEqual([0, []]);
    return healed;
  });
  return Promise.all([healing, kubelet]);
}

/** Kubelet's part: it retries to stop a dead sandbox until that works. */
export async function untilStopped(node: LabNode, sandboxId: string): Promise<void> {
  await until("kubelet's own stop has succeeded", HANG_GUARD_MS, async () => {
    try {
      await node.cri.stopPodSandbox(sandboxId, CALL);
      return true;
    } catch (error) {
      if (error instanceof RuntimeError) return undefined;
      throw error;
    }
  });
}

const RETRY_MS = 1000;

/**
 * Kubelet's part for one pod after a crash: it stops the dead sandbox, then makes the next attempt with its containers,
 * and retries both until they work. Stops when the test does.
 */
export async function runAgain(node: LabNode, ref: PodRef, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    try {
      const ofPod = await node.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": ref.uid } }, CALL);
      if (ofPod.some(({ state }) => state === PodSandboxState.SANDBOX_READY)) return;
      for (const { id } of ofPod) await node.cri.stopPodSandbox(id, CALL);
      const attempt = Math.max(-1, ...ofPod.map(({ metadata }) => metadata?.attempt ?? 0)) + 1;
      await runPod(node, { ...ref, attempt, containers: [{ name: "main" }] });
    } catch (error) {
      if (!(error instanceof RuntimeError)) throw error;
      await sleep(RETRY_MS);
    }
  }
}
