import { describe, expect } from "vitest";
import { liftOrder, orderAtGate } from "../../lab/cni-gate.ts";
import { DELEGATE } from "../../lab/delegate-daemon.ts";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { AT_ONCE, expectAlive, expectGone, heal } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";

describe.skipIf(!HAS_MULTUS)(`below the daemon of thick multus${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("a delegate whose DEL hangs is ended, although the runtime did not start it", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const running = await runMultusPod(node, { name: "runs" });
    const pod = await runMultusPod(node, { name: "web" });
    // It leaves a process that keeps its output open: only the session shows where it comes from.
    await orderAtGate(node, "DEL", "web", "sleep 1000000000 &\nexit 0\n", DELEGATE);
    await expect(node.cri.stopPodSandbox(pod.sandboxId, { timeoutMs: 1000 })).rejects.toThrow(RuntimeError);
    await liftOrder(node, "DEL", "web");
    await until("only what the delegate has left works on the DEL", HANG_GUARD_MS, () => {
      const found = deletionsOf(node, pod.sandboxId);
      return found.join() === "sleep" || undefined;
    });

    const { report } = await heal(node, [...AT_ONCE, "--inflight-grace", "0s"]);

    expect(report.remaining).toEqual([]);
    expect(deletionsOf(node, pod.sandboxId)).toEqual([]);
    await expectGone(node, pod);
    await expectAlive(node, { ready: [running], kept: [] });
  });
});

/** By their programs. The runtime kills its own plugin, the shim, when its caller times out. */
function deletionsOf(node: LabNode, sandboxId: string): readonly string[] {
  return processesOf(node)
    .filter(({ environment }) => environment.get("CNI_COMMAND") === "DEL")
    .filter(({ environment }) => environment.get("CNI_CONTAINERID") === sandboxId)
    .map(({ command }) => command[0] ?? "");
}
