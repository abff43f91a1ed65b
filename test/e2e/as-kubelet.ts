import { expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, HANG_GUARD_MS } from "../lab/real-node.ts";
import { type Healed, heal } from "./healed-node.ts";

/** Heals while somebody plays kubelet. What was not healed is told at once: kubelet would wait for it in vain. */
export function healBeside<T>(node: LabNode, flags: readonly string[], kubelet: Promise<T>): Promise<[Healed, T]> {
  const healing = heal(node, flags).then((healed) => {
    const outcomes = new Set(healed.report.actions?.map(({ outcome }) => outcome));
    expect(outcomes, JSON.stringify(healed.report)).toEqual(new Set(["healed"]));
    expect([healed.code, healed.report.remaining]).toEqual([0, []]);
    return healed;
  });
  return Promise.all([healing, kubelet]);
}

/** Kubelet's part: it stops a dead sandbox again and again, until that works. */
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
