import { setTimeout as sleep } from "node:timers/promises";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import { verdictOf } from "../diagnose/verdict.ts";
import type { Finding } from "../evidence/finding.ts";
import { valueOr } from "../host/source.ts";
import type { OpenCluster } from "../kube/cluster-credentials.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import { type Planned, type ScanOptions, scanNode } from "../plan/scan.ts";
import { DEFAULT_WAITS, type Interruption, uninterrupted, type Waits } from "./proof/fresh-facts.ts";
import { cniBinDirsOf, openRuntime, type RuntimeAccess, type RuntimeAccessOptions } from "./proof/runtime-access.ts";
import { stormBrake } from "./proof/storm-brake.ts";
import type { Recovery } from "./quarantine/recover.ts";
import type { ActionResult } from "./run-action.ts";
import { type PlanTools, runPlan } from "./run-plan.ts";
import { type HealSession, openHealSession, type SessionOptions } from "./session.ts";
import { type Outcome, ok } from "./state/outcome.ts";

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
  const running = {
    concurrency,
    brake: stormBrake(),
    onResult: sinks.result,
    onSlow: sinks.slow ?? (() => undefined),
  };
  const startedAt = first.snapshot.observedAt;
  const tried = new Set<string>();
  const results: ActionResult[] = [];
  const amend = (diagnosis: Diagnosis, snapshot: Snapshot): Diagnosis => {
    const isHealed = results.some(({ outcome }) => outcome === "healed");
    return withUnhealed(isHealed ? withoutHistory(diagnosis, snapshot, startedAt) : diagnosis, results, snapshot);
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

function runtimeFor(
  snapshot: Snapshot,
  { session, cniCacheDir, waits, runtime = openRuntime }: RuntimeSource,
): RuntimeAccess {
  return runtime(snapshot, { hostRoot: session.hostRoot, cniCacheDir, waits });
}

type RuntimeSource = Pick<RunOptions, "cniCacheDir" | "waits" | "runtime"> & {
  readonly session: { readonly hostRoot: string };
};

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
