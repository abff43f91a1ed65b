import type { Step } from "../../evidence/step.ts";
import { resolveOnHost } from "../../host/host-paths.ts";
import { stateOfSocket } from "../../snapshot/csi.ts";
import type { Interruption, Sleep, Waits } from "../execution/waits.ts";
import { refused, type StepResult } from "./step-result.ts";

export interface AwaitSocketTools {
  readonly hostRoot: string;
  readonly waits: Pick<Waits, "queryMs" | "socketMs">;
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

const POLL_MS = 250;

/** Waits, with a timeout, until a process listens again on a CSI driver's socket. */
export async function awaitSocket(
  { path, optional }: Extract<Step, { kind: "await-socket" }>,
  tools: AwaitSocketTools,
): Promise<StepResult> {
  for (let waited = 0; ; waited += POLL_MS) {
    const state = await stateOfSocket(
      resolveOnHost(tools.hostRoot, path, "keep"),
      AbortSignal.timeout(tools.waits.queryMs),
    );
    if (state === "listening") return { kind: "done" };
    if (waited >= tools.waits.socketMs || tools.interruption.stop.aborted) {
      if (optional) return { kind: "unneeded" };
      return refused({ code: "socket-not-served", path, seconds: Math.round(tools.waits.socketMs / 1000) });
    }
    await tools.sleep(POLL_MS);
  }
}
