import type { Finding } from "../../evidence/finding.ts";
import type { NodeTools } from "../execution/node-tools.ts";
import { proveDead } from "../execution/prove.ts";
import { turnKindOf } from "../execution/turn-kind.ts";
import { held, journaled, refused, type StepResult } from "./step-result.ts";

/** Frees network and address through the runtime; record, name and logs stay. */
export async function stopSandbox(sandboxId: string, finding: Finding, tools: NodeTools): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused({ code: "not-dead", liveness: proof.liveness });
  return await journaled(tools, finding, { kind: "stop-sandbox", sandboxId }, async () => {
    const call = { timeoutMs: tools.waits.actMs, signal: tools.interruption.giveUp };
    const kind = await turnKindOf(sandboxId, tools.facts);
    const objection = await tools.turn(() => tools.cri.stopPodSandbox(sandboxId, call), kind);
    return objection === undefined ? { kind: "done" } : held(objection);
  });
}
