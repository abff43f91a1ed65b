import type { Diagnosis } from "../../diagnose/diagnose.ts";
import { verdictOf } from "../../diagnose/verdict.ts";
import type { Finding } from "../../evidence/finding.ts";
import { valueOr } from "../../host/source.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";
import type { Plan, PlannedAction } from "../../plan/plan.ts";
import type { Snapshot } from "../../snapshot/types/snapshot.ts";
import type { ActionResult } from "./run-action.ts";
import { type PlanTools, runPlan } from "./run-plan.ts";
import { cniBinDirsOf, openRuntime, type RuntimeAccess } from "./runtime-access.ts";
import type { HealSession } from "./session.ts";
import { stormBrake } from "./storm-brake.ts";
import { DEFAULT_WAITS, type Interruption, uninterrupted, type Waits } from "./waits.ts";

interface HealNodeOptions {
  readonly session: HealSession;
  /** Opened by the caller, to read while the session was being opened. */
  readonly runtime?: RuntimeAccess;
  /** Plans the findings of a later scan. */
  readonly plan: (diagnosis: Diagnosis) => Plan;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  readonly cluster?: OpenCluster;
  /** `first`: what the run saw first. */
  readonly scan: (first: Snapshot) => Promise<{ readonly snapshot: Snapshot; readonly diagnosis: Diagnosis }>;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  readonly interruption?: Interruption;
  readonly onResult: (result: ActionResult) => void;
  /** Called once for an action that the others do not wait for any longer. */
  readonly onSlow?: (action: PlannedAction) => void;
}

export interface Healing {
  readonly results: readonly ActionResult[];
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

/**
 * A step may reveal another finding: with its hung plugin gone, an incomplete sandbox gets listed. New findings get
 * another round; nothing is tried twice in one run.
 */
const ROUNDS = 3;

/** Executes a plan, scans again, and verifies: only a finding that is gone is healed. */
export async function healNode(
  first: { readonly snapshot: Snapshot; readonly plan: Plan },
  options: HealNodeOptions,
): Promise<Healing> {
  const { concurrency, onResult, onSlow = () => undefined, interruption = uninterrupted() } = options;
  const running = { concurrency, brake: stormBrake(), onResult, onSlow };
  const startedAt = first.snapshot.observedAt;
  const tried = new Set<string>();
  const results: ActionResult[] = [];
  let plan = first.plan;
  let seen = { snapshot: first.snapshot };
  for (let round = 1; ; round++) {
    const runtime =
      (round === 1 ? options.runtime : undefined) ??
      openRuntime(seen.snapshot, { ...options, hostRoot: options.session.hostRoot });
    try {
      const tools = toolsFor(seen.snapshot, runtime, options, interruption);
      results.push(...(await runPlan(plan, tools, running)));
    } finally {
      runtime.close();
    }
    for (const action of plan.actions) tried.add(action.finding.id).add(whatIsDone(action));
    const now = await options.scan(first.snapshot);
    seen = now;
    const next = options.plan(now.diagnosis);
    const isNew = (action: PlannedAction) => !tried.has(action.finding.id) && !tried.has(whatIsDone(action));
    plan = { ...next, actions: next.actions.filter(isNew) };
    if (plan.actions.length === 0 || round === ROUNDS || interruption.stop.aborted) {
      const { snapshot } = now;
      const settled = results.some(({ outcome }) => outcome === "healed")
        ? withoutHistory(now.diagnosis, snapshot, startedAt)
        : now.diagnosis;
      const diagnosis = withUnhealed(settled, results, snapshot);
      return { snapshot, diagnosis, results: results.map((result) => verified(result, diagnosis)) };
    }
  }
}

/** A failed action of the first round may have another class in the next, and the same steps would fail again. */
function whatIsDone({ lane, steps }: PlannedAction): string {
  return [lane, ...steps.map((step) => ("path" in step ? `${step.kind} ${step.path}` : step.kind))].join("\n");
}

/**
 * A failure that was reported before the heal, of an attempt that is over, is no evidence about the next attempt, which
 * kubelet makes within seconds. It stays listed as pending, and does not affect the verdict.
 */
function withoutHistory(diagnosis: Diagnosis, snapshot: Snapshot, startedAt: Date): Diagnosis {
  if (diagnosis.verdict !== "degraded") return diagnosis;
  const current = diagnosis.pending.filter(
    ({ waitsFor, reported }) =>
      waitsFor !== undefined ||
      // The runtime reports the end of the attempt that the heal ended.
      reported.some(({ by, at }) => by !== "runtime" && (at === undefined || at >= startedAt)),
  );
  return { ...diagnosis, verdict: verdictOf(snapshot, diagnosis.findings, current) };
}

/**
 * A removal that hangs or timed out leaves a running plugin, and the sandbox then appears as being removed. What
 * unghost failed to heal and is still listed is still a finding.
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
    verdict: diagnosis.verdict === "unknown" ? "unknown" : "ghosts",
    findings: [...diagnosis.findings, ...unhealed],
    kept: diagnosis.kept.filter(({ sandboxId }) => !ids.has(sandboxId)),
  };
}

function sandboxOf(subject: Finding["subject"]): string {
  return ("sandboxId" in subject ? subject.sandboxId : undefined) ?? "";
}

/** Verifies by effect: an action that succeeded while its finding still exists has not healed it. */
function verified(result: ActionResult, { findings }: Diagnosis): ActionResult {
  const { id } = result.action.finding;
  if (result.outcome !== "healed" || !findings.some((finding) => finding.id === id)) return result;
  return { ...result, outcome: "failed", reason: "every step succeeded, and it is still there" };
}

function toolsFor(
  snapshot: Snapshot,
  runtime: RuntimeAccess,
  { session, sleep, waits = DEFAULT_WAITS, cluster }: HealNodeOptions,
  interruption: Interruption,
): PlanTools {
  const conf = valueOr(snapshot.cni.conf, undefined);
  return {
    ...runtime,
    stateDir: session.stateDir,
    journal: session.journal,
    hostRoot: session.hostRoot,
    cluster,
    conf,
    binDirs: cniBinDirsOf(snapshot),
    waits,
    sleep,
    interruption,
  };
}
