import type { Finding } from "../classes/finding.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import { openContainerd } from "../runtime/containerd.ts";
import { openCri } from "../runtime/cri.ts";
import type { OpenCluster } from "../snapshot/open-cluster.ts";
import { valueOr } from "../snapshot/source.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { departures } from "./departures.ts";
import { freshFacts } from "./fresh-facts.ts";
import { type Interruption, uninterrupted } from "./interruption.ts";
import { DEFAULT_WAITS, type NodeTools, type Waits } from "./node-tools.ts";
import type { ActionResult } from "./run-action.ts";
import { runPlan } from "./run-plan.ts";
import type { HealSession } from "./session.ts";
import { stormBrake } from "./storm-brake.ts";

export interface HealNodeOptions {
  readonly session: HealSession;
  /** What may be done about what a later look shows. */
  readonly plan: (diagnosis: Diagnosis) => Plan;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  readonly cluster?: OpenCluster;
  readonly look: () => Promise<{ readonly snapshot: Snapshot; readonly diagnosis: Diagnosis }>;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  readonly interruption?: Interruption;
  readonly onResult: (result: ActionResult) => void;
  /** Told once for an action that the others do not wait for any longer. */
  readonly onSlow?: (action: PlannedAction) => void;
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
  const { concurrency, onResult, onSlow = () => undefined, interruption = uninterrupted() } = options;
  const running = { concurrency, brake: stormBrake(), onResult, onSlow };
  const tried = new Set<string>();
  const results: ActionResult[] = [];
  let plan = first.plan;
  let seen = { snapshot: first.snapshot };
  for (let round = 1; ; round++) {
    const tools = openTools(seen.snapshot, options, interruption);
    try {
      results.push(...(await runPlan(plan, tools, running)));
    } finally {
      tools.cri.close();
      tools.containerd?.close();
    }
    for (const action of plan.actions) tried.add(action.finding.id).add(whatIsDone(action));
    const now = await options.look();
    seen = now;
    const next = options.plan(now.diagnosis);
    const isNew = (action: PlannedAction) => !tried.has(action.finding.id) && !tried.has(whatIsDone(action));
    plan = { ...next, actions: next.actions.filter(isNew) };
    if (plan.actions.length === 0 || round === ROUNDS || interruption.stop.aborted) {
      const { snapshot } = now;
      const diagnosis = withUnhealed(now.diagnosis, results, snapshot);
      return { snapshot, diagnosis, results: results.map((result) => verified(result, diagnosis)) };
    }
  }
}

/** A failure in the first round may be found under another name in the next, and the same treatment fails again. */
function whatIsDone({ lane, steps }: PlannedAction): string {
  return [lane, ...steps.map((step) => ("path" in step ? `${step.kind} ${step.path}` : step.kind))].join("\n");
}

/**
 * A removal that hangs or was given up leaves a plugin at work, and the sandbox then passes for one that is being
 * removed. We know better: what we failed to heal and is still listed is still a finding.
 */
function withUnhealed(diagnosis: Diagnosis, results: readonly ActionResult[], { cri }: Snapshot): Diagnosis {
  const listed = new Set<string>(valueOr(cri, undefined)?.sandboxes.map(({ id }) => id));
  const found = new Set(diagnosis.findings.flatMap(({ id, subject }) => [id, sandboxOf(subject)]));
  const unhealed = results
    .filter(({ outcome }) => outcome === "failed" || outcome === "skipped")
    .map(({ action }) => action.finding)
    .filter(({ id, subject }) => listed.has(sandboxOf(subject)) && !found.has(id) && !found.has(sandboxOf(subject)));
  if (unhealed.length === 0) return diagnosis;
  const ids = new Set(unhealed.map(({ subject }) => sandboxOf(subject)));
  return {
    ...diagnosis,
    verdict: diagnosis.verdict === "healthy" ? "ghosts" : diagnosis.verdict,
    findings: [...diagnosis.findings, ...unhealed],
    kept: diagnosis.kept.filter(({ sandboxId }) => !ids.has(sandboxId)),
  };
}

function sandboxOf(subject: Finding["subject"]): string {
  return ("sandboxId" in subject ? subject.sandboxId : undefined) ?? "";
}

/** Verify by effect: an action that succeeded and left its finding standing has not healed anything. */
function verified(result: ActionResult, { findings }: Diagnosis): ActionResult {
  const { id } = result.action.finding;
  if (result.outcome !== "healed" || !findings.some((finding) => finding.id === id)) return result;
  return { ...result, outcome: "failed", reason: "every step succeeded, and it is still there" };
}

function openTools(snapshot: Snapshot, options: HealNodeOptions, interruption: Interruption): Omit<NodeTools, "turn"> {
  const { session, cniCacheDir, sleep, waits = DEFAULT_WAITS, cluster } = options;
  const path = snapshot.runtime.endpoint.replace(/^unix:\/\//, "");
  const cri = openCri(path);
  const containerd = snapshot.containerd.status === "absent" ? undefined : openContainerd(path);
  const conf = valueOr(snapshot.cni.conf, undefined);
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  const cniCacheDirs = multusDir === undefined ? [cniCacheDir] : [cniCacheDir, multusDir];
  return {
    stateDir: session.stateDir,
    journal: session.journal,
    hostRoot: session.hostRoot,
    cri,
    containerd,
    ...(cluster === undefined ? {} : { cluster }),
    facts: freshFacts({ root: session.hostRoot, cniCacheDirs, cri, containerd, lookMs: waits.lookMs }),
    departed: departures({ cri, containerd, lookMs: waits.lookMs }),
    conf,
    binDirs: conf?.binDirs ?? valueOr(snapshot.cri, undefined)?.cniDirs?.bin ?? [],
    cniCacheDirs,
    waits,
    sleep,
    interruption,
  };
}
