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
  const asked = await Promise.all(proof.containerIds.map((id) => logPathOf(id, tools)));
  const logPaths = asked.filter((path) => path.startsWith("/"));
  if (logPaths.length > 0) {
    const saved = await saveLogs(tools, { ...reasonFor(finding), sandboxId, logPaths });
    if (saved.outcome !== "saved") return { kind: "refused", reason: saved.refusal.message };
  }
  return await journaled(tools, finding, { kind: "remove-sandbox", sandboxId }, () => remove(sandboxId, tools));
}

/** A container keeps the path that it was made with: what the look has read need not be asked again. */
async function logPathOf(containerId: string, { cri, logPaths, waits }: NodeTools): Promise<string> {
  const seen = logPaths.get(containerId);
  if (seen !== undefined) return seen;
  return (await cri.containerStatus(containerId, { timeoutMs: waits.lookMs })).status?.logPath ?? "";
}

async function remove(sandboxId: string, { cri, turn, departed, waits, interruption }: NodeTools): Promise<StepResult> {
  const call = { timeoutMs: waits.actMs, signal: interruption.giveUp };
  const departure = await departed(sandboxId, () => turn(() => cri.removePodSandbox(sandboxId, call)));
  if (departure === "gone") return { kind: "done" };
  if (typeof departure === "object") return { kind: "held", reason: departure.held };
  const left = departure === "listed" ? "knows it" : "has its record";
  return { kind: "failed", reason: `the runtime said it removed the sandbox, and still ${left}` };
}
