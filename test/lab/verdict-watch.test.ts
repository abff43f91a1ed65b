import { describe, expect } from "vitest";
import { hungAdd } from "../../lab/faults/hung-plugin.ts";
import { logCreateTimeout } from "../../lab/kubelet-log.ts";
import { startNode } from "../../lab/node.ts";
import { sandboxConfig } from "../../lab/pods.ts";
import { watchVerdicts } from "../../lab/verdict-watch.ts";
import { waitingPods } from "../../lab/waiting-pods.ts";
import { kubeletKnows, runKubelet } from "../e2e/scanned-node.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE } from "./real-node.ts";

/** A substitute of unghost that always reports healthy. */
const BLIND = "/bin/true";

describe.skipIf(NO_REAL_NODE !== undefined)("the watch over verdicts", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("refuses a healthy verdict while a pod waits after kubelet's timeout", async (runtime) => {
    const node = await startNode({ runtime, watch: watchVerdicts(BLIND) });
    try {
      await runKubelet(node);
      const hung = await hungAdd(node, { name: "stuck", uid: "stuck" });
      kubeletKnows(node, hung);
      await node.check([BLIND, "scan"]);

      logCreateTimeout(node, hung.ref);
      expect(await waitingPods(node)).toMatchObject([{ uid: "stuck", pod: "default/stuck", hangs: true }]);
      await expect(node.check([BLIND, "scan"])).rejects.toThrow("reports healthy while pods wait");
      await expect(node.check([BLIND, "heal"])).rejects.toThrow("default/stuck");

      await node.kill(hung.pid);
      await node.cri.runPodSandbox(sandboxConfig({ ...hung.ref, attempt: 1 }, { ...hung.ref, attempt: 1 }), CALL);
      expect(await waitingPods(node)).toEqual([]);
      await node.check([BLIND, "scan"]);
    } finally {
      await node.destroy();
    }
  });
});
