import type { CriClient } from "../../runtime/cri.ts";
import { PodSandboxState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { Interruption, Sleep, Waits } from "../execution/waits.ts";
import type { StepResult } from "./step-result.ts";

export interface AwaitKubeletTools {
  readonly cri: Pick<CriClient, "listPodSandbox">;
  readonly waits: Pick<Waits, "queryMs" | "kubeletMs">;
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

const POLL_MS = 1000;

/** Waits for a running kubelet to finish: the sandbox is removed, or a newer one of the same pod becomes Ready. */
export async function awaitKubelet(sandboxId: string, tools: AwaitKubeletTools): Promise<StepResult> {
  const call = { timeoutMs: tools.waits.queryMs };
  const [sandbox] = await tools.cri.listPodSandbox({ id: sandboxId }, call);
  if (sandbox?.metadata === undefined) return { kind: "healed" };
  const { uid, attempt } = sandbox.metadata;
  const deadline = performance.now() + tools.waits.kubeletMs;
  while (performance.now() < deadline && !tools.interruption.stop.aborted) {
    const ofPod = await tools.cri.listPodSandbox({ labelSelector: { "io.kubernetes.pod.uid": uid } }, call);
    const isGone = !ofPod.some(({ id }) => id === sandboxId);
    const isReplaced = ofPod.some(
      ({ state, metadata }) => state === PodSandboxState.SANDBOX_READY && (metadata?.attempt ?? 0) > attempt,
    );
    if (isGone || isReplaced) return { kind: "healed" };
    await tools.sleep(POLL_MS);
  }
  return { kind: "done" };
}
