import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, HANG_GUARD_MS } from "../lab/real-node.ts";

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
