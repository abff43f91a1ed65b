import { sandboxNameHeldByInflightRun } from "../../classes/creation-blocked/sandbox-name-held-by-inflight-run.ts";
import { classById } from "../../classes/index.ts";
import type { DiagnosisPolicy } from "../../evidence/policy.ts";
import type { HealPolicy } from "../../plan/policy.ts";
import type { AgentPolicy, ClassMode } from "./agent-policy.ts";

/**
 * The agent's policy, as diagnosis and plan understand it. There is no cap here: the ledger caps what it lets run, so
 * that what has been given up does not take the place of others.
 */
export function healPolicyOf({ classes, recreatePods }: AgentPolicy, asked: DiagnosisPolicy): HealPolicy {
  const inMode = (wanted: ClassMode): readonly string[] =>
    [...classes].filter(([, { mode }]) => mode === wanted).map(([id]) => id);
  return {
    ...asked,
    skip: [...asked.skip, ...inMode("off")],
    allDead: false,
    cap: Number.POSITIVE_INFINITY,
    consented: new Set(inMode("heal").filter((id) => needsConsent(id) && (id !== NAME_HELD || recreatePods))),
  };
}

/** Treated without asking where a process holds the name, and by consent alone where the pod would have to go. */
const NAME_HELD = sandboxNameHeldByInflightRun.id;

function needsConsent(id: string): boolean {
  return id === NAME_HELD || classById(id)?.treatment.mode === "attended";
}
