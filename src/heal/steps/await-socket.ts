import { stateOfSocket } from "../../snapshot/csi.ts";
import { resolveOnHost } from "../../snapshot/host-paths.ts";
import type { NodeTools } from "../node-tools.ts";
import type { StepResult } from "../step-result.ts";

const POLL_MS = 500;

/** Waits, not for ever, until somebody listens again where a CSI driver's socket belongs. */
export async function awaitSocket(path: string, tools: NodeTools): Promise<StepResult> {
  const deadline = performance.now() + tools.waits.kubeletMs;
  for (;;) {
    const state = await stateOfSocket(
      resolveOnHost(tools.hostRoot, path, "keep"),
      AbortSignal.timeout(tools.waits.lookMs),
    );
    if (state === "listening") return { kind: "done" };
    if (performance.now() > deadline || tools.interruption.stop.aborted) {
      const waited = Math.round(tools.waits.kubeletMs / 1000);
      return { kind: "refused", reason: `nobody listened on ${path} within ${waited} s, so no pod was restarted` };
    }
    await tools.sleep(POLL_MS);
  }
}
