import type { Finding } from "../../evidence/finding.ts";
import type { CriClient } from "../../runtime/cri.ts";
import type { FreshFacts } from "../execution/fresh-facts.ts";
import { type ProofTools, proveDead, proveStillDead } from "../execution/prove.ts";
import { type Turn, turnKindOf } from "../execution/turns.ts";
import type { Interruption, Waits } from "../execution/waits.ts";
import { held, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";

export interface StopSandboxTools extends JournalTools, ProofTools {
  readonly cri: ProofTools["cri"] & Pick<CriClient, "stopPodSandbox">;
  readonly facts: ProofTools["facts"] & Pick<FreshFacts, "resultFiles">;
  readonly waits: Pick<Waits, "queryMs" | "actMs">;
  readonly interruption: Pick<Interruption, "giveUp">;
  readonly turn: Turn;
}

/** Releases network and address through the runtime; record, name and logs stay. */
export async function stopSandbox(sandboxId: string, finding: Finding, tools: StopSandboxTools): Promise<StepResult> {
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "not-dead") return refused({ code: "not-dead", liveness: proof.liveness });
  return await journaled(tools, finding, { kind: "stop-sandbox", sandboxId }, async () => {
    const call = { timeoutMs: tools.waits.actMs, signal: tools.interruption.giveUp };
    const kind = await turnKindOf(sandboxId, tools.facts);
    const objection = await tools.turn(async () => {
      await proveStillDead(sandboxId, tools);
      await tools.cri.stopPodSandbox(sandboxId, call);
    }, kind);
    return objection === undefined ? { kind: "done" } : held(objection);
  });
}
