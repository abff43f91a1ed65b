import type { Diagnosis } from "../diagnose/diagnose.ts";
import { type Plan, planHealing } from "../plan/plan.ts";
import type { HealPolicy } from "../plan/policy.ts";
import { openContainerd } from "../runtime/containerd.ts";
import { openCri } from "../runtime/cri.ts";
import { valueOr } from "../snapshot/source.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { freshFacts } from "./fresh-facts.ts";
import { DEFAULT_WAITS, type NodeTools, type Waits } from "./node-tools.ts";
import type { ActionResult } from "./run-action.ts";
import { runPlan } from "./run-plan.ts";
import type { HealSession } from "./session.ts";

export interface HealNodeOptions {
  readonly session: HealSession;
  readonly policy: HealPolicy;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  readonly look: () => Promise<{ readonly snapshot: Snapshot; readonly diagnosis: Diagnosis }>;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  readonly onResult: (result: ActionResult) => void;
}

export interface Healing {
  readonly results: readonly ActionResult[];
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

/**
 * Ending one thing may bring the next to light: with its hung plugin gone, a half-made sandbox gets listed. What is new
 * gets a round of its own; nothing is tried twice in one run.
 */
const ROUNDS = 3;

/** Carries out a plan, looks again, and says what became of it: healed is only what is no longer there. */
export async function healNode(
  first: { readonly snapshot: Snapshot; readonly plan: Plan },
  options: HealNodeOptions,
): Promise<Healing> {
  const tried = new Set<string>();
  const results: ActionResult[] = [];
  let plan = first.plan;
  let seen = { snapshot: first.snapshot };
  for (let round = 1; ; round++) {
    const tools = openTools(seen.snapshot, options);
    try {
      results.push(...(await runPlan(plan, tools, options.concurrency, options.onResult)));
    } finally {
      tools.cri.close();
      tools.containerd?.close();
    }
    for (const { finding } of plan.actions) tried.add(finding.id);
    const now = await options.look();
    seen = now;
    const next = planHealing(now.diagnosis, options.policy);
    plan = { ...next, actions: next.actions.filter(({ finding }) => !tried.has(finding.id)) };
    if (plan.actions.length === 0 || round === ROUNDS) {
      return { ...now, results: results.map((result) => verified(result, now.diagnosis)) };
    }
  }
}

/** Verify by effect: an action that succeeded and left its finding standing has not healed anything. */
function verified(result: ActionResult, { findings }: Diagnosis): ActionResult {
  const { id } = result.action.finding;
  if (result.outcome !== "healed" || !findings.some((finding) => finding.id === id)) return result;
  return { ...result, outcome: "failed", reason: "every step succeeded, and it is still there" };
}

function openTools(snapshot: Snapshot, options: HealNodeOptions): NodeTools {
  const { session, cniCacheDir, sleep, waits = DEFAULT_WAITS } = options;
  const path = snapshot.runtime.endpoint.replace(/^unix:\/\//, "");
  const containerd = snapshot.containerd.status === "absent" ? undefined : openContainerd(path);
  const conf = valueOr(snapshot.cni.conf, undefined);
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  return {
    stateDir: session.stateDir,
    journal: session.journal,
    hostRoot: session.hostRoot,
    cri: openCri(path),
    containerd,
    facts: freshFacts(session.hostRoot, containerd, waits.lookMs),
    conf,
    binDirs: conf?.binDirs ?? valueOr(snapshot.cri, undefined)?.cniDirs?.bin ?? [],
    cniCacheDirs: multusDir === undefined ? [cniCacheDir] : [cniCacheDir, multusDir],
    waits,
    sleep,
  };
}
