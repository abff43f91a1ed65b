import type { Finding } from "../../classes/finding.ts";
import type { NodeTools } from "../node-tools.ts";
import { proveDead } from "../prove.ts";
import { saveLogs } from "../save-logs.ts";
import { journaled, reasonFor, type StepResult } from "../step-result.ts";

/** Releases the name through the runtime, which stops the sandbox first. The logs that go with it are saved before. */
export async function removeSandbox(sandboxId: string, finding: Finding, tools: NodeTools): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "alive") return { kind: "refused", reason: `not dead any more: ${proof.because}` };
  if (proof.logPaths.length > 0) {
    const saved = await saveLogs(tools, { ...reasonFor(finding), sandboxId, logPaths: proof.logPaths });
    if (saved.outcome !== "saved") return { kind: "refused", reason: saved.refusal.message };
  }
  return await journaled(tools, finding, { kind: "remove-sandbox", sandboxId }, async () => {
    const call = { timeoutMs: tools.waits.actMs, signal: tools.interruption.giveUp };
    const held = await tools.turn(() => tools.cri.removePodSandbox(sandboxId, call));
    return held === undefined ? await verifyRemoved(sandboxId, tools) : { kind: "held", reason: held };
  });
}

/** RemovePodSandbox answers OK for an id it does not know: only what is no longer there is removed. */
async function verifyRemoved(sandboxId: string, tools: NodeTools): Promise<StepResult> {
  const call = { timeoutMs: tools.waits.lookMs };
  const [state, record] = await Promise.all([
    tools.cri.podSandboxState(sandboxId, call),
    tools.containerd?.getContainer(sandboxId, call),
  ]);
  if (state !== undefined) {
    return { kind: "failed", reason: "the runtime said it removed the sandbox, and still knows it" };
  }
  if (record !== undefined) {
    return { kind: "failed", reason: "the runtime said it removed the sandbox, and still has its record" };
  }
  return { kind: "done" };
}
