import { setTimeout as sleep } from "node:timers/promises";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import { verdictOf } from "../diagnose/verdict.ts";
import { sandboxIdOf } from "../evidence/finding.ts";
import { valueOr } from "../host/source.ts";
import type { OpenCluster } from "../kube/cluster-credentials.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import { type Planned, type ScanOptions, scanNode } from "../plan/scan.ts";
import { DEFAULT_WAITS, type Interruption, uninterrupted, type Waits } from "./proof/fresh-facts.ts";
import { cniBinDirsOf, openRuntime, type RuntimeAccess, type RuntimeAccessOptions } from "./proof/runtime-access.ts";
import { type StormBrake, stormBrake } from "./proof/storm-brake.ts";
import { semaphore, turns } from "./proof/turns.ts";
import type { Recovery } from "./quarantine/recover.ts";
import { type ActionResult, runAction } from "./run-action.ts";
import { type HealSession, openHealSession, type SessionOptions } from "./session.ts";
import { type Outcome, ok } from "./state/outcome.ts";
import type { StepTools } from "./steps/step-result.ts";

/** How the command line, the boot hook and the agent heal: where to scan, what is allowed, where to report. */
export interface RunOptions extends ScanOptions {
  /** What of a plan may be executed now; everything by default. */
  readonly narrow?: (planned: Planned) => Plan;
  readonly sinks: Sinks;
  readonly session: SessionOptions;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  /** Access to the runtime of a snapshot; by default the one that was observed. */
  readonly runtime?: (snapshot: Snapshot, options: RuntimeAccessOptions) => RuntimeAccess;
  /** Missing if nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
  readonly interruption?: Interruption;
}

/** Where the events of a run go. */
export interface Sinks {
  /** Before the plan is executed: the session is open and the plan is current. */
  readonly begin?: (plan: Plan, recoveries: readonly Recovery[]) => void;
  readonly result: (result: ActionResult) => void;
  /** Once for an action that the others do not wait for any longer. */
  readonly slow?: (action: PlannedAction) => void;
  /** Each later scan of the run. */
  readonly scanned?: (planned: Planned) => void;
  readonly warning: (warning: string) => void;
}

/** The results of a run, and the scan that verified them. */
export interface Healing extends Planned {
  readonly results: readonly ActionResult[];
}

/** A run that waited longer than this for the lock scans again, because another run may have changed the node. */
const STALE_AFTER_MS = 150;

/**
 * Heals and verifies: opens a session, scans again if another run may have made the plan stale, executes it, and scans
 * again. The only way from a plan to a changed node.
 */
export async function run(shown: Planned, options: RunOptions): Promise<Outcome<Healing>> {
  const { session: sessionOptions, sinks } = options;
  const askedAt = performance.now();
  const runtime = runtimeFor(shown.snapshot, options);
  // Starts reading the facts for the proofs while the session opens.
  runtime.facts.begin();
  try {
    const opened = await openHealSession(sessionOptions);
    if (!opened.ok) return opened;
    const session = opened.value;
    try {
      const isStale = session.recoveries.length > 0 || performance.now() - askedAt > STALE_AFTER_MS;
      const planned = isStale ? await scanNode(options, { first: shown.snapshot }) : shown;
      if (isStale) {
        runtime.facts.renew();
        sinks.scanned?.(planned);
      }
      const plan = options.narrow?.(planned) ?? planned.plan;
      sinks.begin?.(plan, session.recoveries);
      const healing = await healInRounds(
        { snapshot: planned.snapshot, plan },
        { ...options, session, opened: runtime },
      );
      for (const warning of session.journal.warnings) sinks.warning(warning);
      return ok(healing);
    } finally {
      await session.close();
    }
  } finally {
    runtime.close();
  }
}

interface RoundOptions extends Omit<RunOptions, "session"> {
  readonly session: HealSession;
  /** Opened before, to read while the session was being opened. */
  readonly opened: RuntimeAccess;
}

/**
 * A step may reveal another finding: with its hung plugin gone, an incomplete sandbox gets listed. New findings get
 * another round; nothing is tried twice in one run.
 */
const ROUNDS = 3;

/** Executes a plan, scans again, and verifies: only a finding that is gone is healed. */
async function healInRounds(
  first: { readonly snapshot: Snapshot; readonly plan: Plan },
  options: RoundOptions,
): Promise<Healing> {
  const { concurrency, sinks, narrow, interruption = uninterrupted() } = options;
  const running = { concurrency, brake: stormBrake(), onResult: sinks.result, onSlow: sinks.slow ?? (() => undefined) };
  const startedAt = first.snapshot.observedAt;
  const tried = new Set<string>();
  const results: ActionResult[] = [];
  const amend = (diagnosis: Diagnosis, snapshot: Snapshot): Diagnosis => {
    const isHealed = results.some(({ outcome }) => outcome === "healed");
    return withUnhealed(isHealed ? withoutHistory(diagnosis, startedAt) : diagnosis, results, snapshot);
  };
  let { plan, snapshot } = first;
  for (let round = 1; ; round++) {
    const runtime = round === 1 ? options.opened : runtimeFor(snapshot, options);
    try {
      results.push(...(await runPlan(plan, toolsFor(snapshot, runtime, options, interruption), running)));
    } finally {
      runtime.close();
    }
    for (const action of plan.actions) tried.add(action.finding.id).add(whatIsDone(action));
    const now = await scanNode(options, { first: first.snapshot, amend });
    sinks.scanned?.(now);
    const next = narrow?.(now) ?? now.plan;
    const isNew = (action: PlannedAction) => !tried.has(action.finding.id) && !tried.has(whatIsDone(action));
    plan = { ...next, actions: next.actions.filter(isNew) };
    snapshot = now.snapshot;
    if (plan.actions.length === 0 || round === ROUNDS || interruption.stop.aborted) {
      return { ...now, results: results.map((result) => verified(result, now.diagnosis)) };
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
function withoutHistory(diagnosis: Diagnosis, startedAt: Date): Diagnosis {
  if (diagnosis.verdict !== "degraded") return diagnosis;
  const current = diagnosis.pending.filter(
    ({ waitsFor, reported }) =>
      waitsFor !== undefined ||
      // It is known from its age alone, and still runs.
      reported.length === 0 ||
      // The runtime reports the end of the attempt that the heal ended.
      reported.some(({ by, at }) => by !== "runtime" && (at === undefined || at >= startedAt)),
  );
  return { ...diagnosis, verdict: verdictOf(diagnosis.view, diagnosis.findings, current) };
}

/**
 * A removal that hangs or timed out leaves a running plugin, and the sandbox then appears as being removed. What
 * unghost failed to heal and is still listed is still a finding.
 */
function withUnhealed(diagnosis: Diagnosis, results: readonly ActionResult[], { cri }: Snapshot): Diagnosis {
  const listed = new Set<string>(valueOr(cri, undefined)?.sandboxes.map(({ id }) => id));
  const found = new Set<string>(diagnosis.findings.flatMap(({ id, subject }) => [id, sandboxIdOf(subject) ?? id]));
  const unhealed = results
    .filter(({ outcome }) => outcome === "failed" || outcome === "skipped")
    .map(({ action }) => action.finding)
    .filter(({ id, subject }) => {
      const sandboxId = sandboxIdOf(subject) ?? "";
      return listed.has(sandboxId) && !found.has(id) && !found.has(sandboxId);
    });
  if (unhealed.length === 0) return diagnosis;
  const ids = new Set(unhealed.map(({ subject }) => sandboxIdOf(subject)));
  return {
    ...diagnosis,
    verdict: diagnosis.verdict === "unknown" ? "unknown" : "ghosts",
    findings: [...diagnosis.findings, ...unhealed],
    kept: diagnosis.kept.filter(({ sandboxId }) => !ids.has(sandboxId)),
  };
}

/** Verifies by effect: an action that succeeded while its finding still exists has not healed it. */
function verified(result: ActionResult, { findings }: Diagnosis): ActionResult {
  const { id } = result.action.finding;
  if (result.outcome !== "healed" || !findings.some((finding) => finding.id === id)) return result;
  return { ...result, outcome: "failed", reason: "every step succeeded, and it is still there" };
}

function runtimeFor(
  snapshot: Snapshot,
  { session, cniCacheDir, waits, runtime = openRuntime }: RunOptions | RoundOptions,
): RuntimeAccess {
  return runtime(snapshot, { hostRoot: session.hostRoot, cniCacheDir, waits });
}

function toolsFor(
  snapshot: Snapshot,
  runtime: RuntimeAccess,
  { session, waits = DEFAULT_WAITS, cluster }: RoundOptions,
  interruption: Interruption,
): PlanTools {
  const { stateDir, journal, hostRoot } = session;
  return {
    ...runtime,
    stateDir,
    journal,
    hostRoot,
    cluster,
    conf: valueOr(snapshot.cni.conf, undefined),
    binDirs: cniBinDirsOf(snapshot),
    waits,
    sleep,
    interruption,
  };
}

/** A stop or removal that takes longer than this is stuck: the others do not wait for it. */
const PATIENCE_MS = 2000;
const MAX_ASIDE = 32;

/** If each DEL is a separate process, a hung one is little evidence about the next. */
const PROCESS_PER_DEL = { patienceMs: PATIENCE_MS, mostUnanswered: 8 };
/** All go through one daemon, which may be slow for lack of CPU: a second without an answer shows that it is not one DEL. */
const ONE_DAEMON = { patienceMs: 10_000, mostUnanswered: 2 };

/** Everything except for the turns, which the actions of one plan share. */
export type PlanTools = Omit<StepTools, "turn">;

interface RunPlanOptions {
  readonly concurrency: number;
  readonly brake: StormBrake;
  readonly onResult: (result: ActionResult) => void;
  /** Called once for an action that takes longer than the others wait. */
  readonly onSlow: (action: PlannedAction) => void;
}

/** Runs all actions, many subjects concurrently and one action at a time per lane, in the plan's order. */
export async function runPlan(
  plan: Plan,
  tools: PlanTools,
  { concurrency, brake, onResult, onSlow }: RunPlanOptions,
): Promise<readonly ActionResult[]> {
  const limits = { patienceMs: PATIENCE_MS, mostAside: MAX_ASIDE };
  // While some actions wait for the runtime, as many others prove and save logs, so that the runtime is not idle in
  // between.
  const actions = semaphore({ ...limits, slots: 2 * concurrency - 1 });
  const probes = tools.conf?.multus?.thick === true ? ONE_DAEMON : PROCESS_PER_DEL;
  const turn = turns({
    slots: semaphore({ ...limits, slots: concurrency }),
    brake,
    probes,
    interruption: tools.interruption,
  });
  const surroundings = { tools: { ...tools, turn }, brake };

  async function take(action: PlannedAction): Promise<ActionResult> {
    const slow = setTimeout(() => onSlow(action), PATIENCE_MS);
    try {
      const result = await runAction(action, surroundings);
      onResult(result);
      return result;
    } finally {
      clearTimeout(slow);
    }
  }

  const lanes = Map.groupBy(plan.actions, ({ lane }) => lane);
  const results = [...lanes.values()].map((lane) =>
    actions.run(async () => {
      const done: ActionResult[] = [];
      for (const action of lane) done.push(await take(action));
      return done;
    }),
  );
  return (await Promise.all(results)).flat();
}
