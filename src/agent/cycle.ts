import { reason } from "../evidence/finding.ts";
import type { FailuresByFinding } from "../heal/journal/earlier-failures.ts";
import type { Healing, Sinks } from "../heal/pipeline.ts";
import type { ActionResult } from "../heal/run-action.ts";
import { type Outcome, type Refusal, refuse } from "../heal/state/outcome.ts";
import { describeError } from "../host/source.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import type { Planned } from "../plan/scan.ts";
import { buildReport, withFailedHeals } from "../report/build.ts";
import { withPlan } from "../report/plan.ts";
import { countsOf, GrowthMeter } from "./counts.ts";
import type { FleetAnswer } from "./limits/gate.ts";
import type { AgentPolicy } from "./policy/agent-policy.ts";
import type { AttemptBook, Outlook } from "./policy/attempts.ts";
import {
  type ClockReading,
  clusterPause,
  decisionsFor,
  type NodeDecisions,
  runnablePlan,
  standsOf,
} from "./policy/decisions.ts";
import { type AgentState, type PauseReason, retriesOf } from "./state/state.ts";
import type { Store } from "./state/store.ts";
import {
  afterBegin,
  afterDeciding,
  afterHealing,
  afterPause,
  afterScan,
  apply,
  withOwnHealing,
} from "./state-changes.ts";

/** What of a plan may run now, and where the events of the run go. */
export interface HealOrder {
  readonly narrow: (planned: Planned) => Plan;
  readonly sinks: Omit<Sinks, "warning">;
}

interface CycleTools {
  readonly store: Store;
  readonly policy: () => AgentPolicy;
  /** Previous attempts, including those of earlier processes. */
  readonly attempts: AttemptBook;
  readonly scan: () => Promise<Planned>;
  readonly heal: (shown: Planned, order: HealOrder) => Promise<Outcome<Healing>>;
  /** Whether the fleet limits allow it. */
  readonly gate: (actions: readonly PlannedAction[]) => Promise<FleetAnswer>;
  readonly ownPodUid: string | undefined;
  /** Something becomes due at this time, by performance.now(). */
  readonly onDue: (atMs: number) => void;
  /** Failed heals in the journal of this node. */
  readonly failures: () => Promise<FailuresByFinding>;
  /** A heal ended with an unexpected error. */
  readonly onLost: (error: unknown) => void;
}

export type Cycle = ReturnType<typeof openCycle>;

interface Treated {
  readonly last: Planned;
  readonly healed: Outcome<Healing>;
}

/** `limit`: the limit of the fleet that refused it. */
export type AskedOutcome =
  | Extract<Outcome<Healing>, { ok: true }>
  | { readonly ok: false; readonly refusal: Refusal; readonly limit?: Extract<FleetAnswer, { kind: "wait" }> };

const ASK_LATER = "Ask again when that has ended.";

/** Another run usually ends soon; a full disk is not freed that fast. */
const RETRY_MS = { lock: 5000, disk: 60_000, other: 30_000 } as const;

/**
 * Scan, decide, heal, publish. Scans continue while a heal is in flight, because one sandbox may hang for the runtime's
 * two minutes. There is one heal at a time.
 */
export function openCycle(tools: CycleTools) {
  const { store, attempts, ownPodUid } = tools;
  const growth = new GrowthMeter();
  let healing: Promise<void> | undefined;
  /** The start of the newest scan that is part of the state. */
  let newestMs = Number.NEGATIVE_INFINITY;
  /** What prevented the last heal from starting, and when it is retried. */
  let ownPause: { readonly reason: PauseReason; readonly untilMs: number } | undefined;

  /** One scan, which starts a heal if one is allowed. */
  async function run(): Promise<void> {
    const seen = await tools.scan();
    const failures = await failuresOf(seen);
    // This scan started before the one that verified a heal: its findings may have been healed since.
    if (seen.startedAtMs < newestMs) return;
    absorb(seen, failures);
    if (healing !== undefined || !settle(seen)) return;
    healing = heal(seen)
      .catch(tools.onLost)
      .finally(() => {
        healing = undefined;
      });
  }

  /** Read only where something was found. */
  async function failuresOf({ diagnosis }: Planned): Promise<FailuresByFinding> {
    return diagnosis.findings.length === 0 ? new Map() : await tools.failures();
  }

  function absorb(seen: Planned, failures: FailuresByFinding): void {
    newestMs = Math.max(newestMs, seen.startedAtMs);
    const { sightings } = store.state();
    const planned = withPlan(buildReport(seen.snapshot, seen.diagnosis), seen.plan);
    const report = withOwnHealing(withFailedHeals(planned, failures), sightings);
    const counts = countsOf(seen);
    const now = readClocks();
    apply(store, afterScan(store.state(), { report, counts, growth: growth.take(seen), seconds: seen.seconds, now }));
    const dueAtMs = pendingDueAtMs(seen, now);
    if (dueAtMs !== undefined) tools.onDue(dueAtMs);
  }

  function decisions(planned: Planned): NodeDecisions {
    const { sightings } = store.state();
    const { ledger } = attempts;
    return decisionsFor(planned, { policy: tools.policy(), ledger, sightings, ownPodUid, now: readClocks() });
  }

  const runnable = (planned: Planned): Plan => runnablePlan(decisions(planned));

  /** Sets the standing of each finding. Returns true if something may be healed now. */
  function settle(planned: Planned): boolean {
    const decided = decisions(planned);
    const mayRun = decided.decided.some(({ decision }) => decision.kind === "run");
    if (!mayRun) ownPause = undefined;
    const clusterReason = clusterPause(planned.diagnosis.view);
    const pauseReason = clusterReason ?? ownPause?.reason;
    apply(store, afterPause(store.state(), pauseReason));
    apply(store, afterDeciding(store.state(), standsOf(decided, pauseReason), readClocks()));
    attempts.foresee(outlook(store.state()));
    if (decided.dueAtMs !== undefined) tools.onDue(decided.dueAtMs);
    if (ownPause !== undefined) tools.onDue(ownPause.untilMs);
    return mayRun && clusterReason === undefined && (ownPause === undefined || ownPause.untilMs <= performance.now());
  }

  function pause(why: PauseReason, milliseconds: number, seen: Planned): void {
    ownPause = { reason: why, untilMs: performance.now() + milliseconds };
    settle(seen);
  }

  async function heal(seen: Planned): Promise<void> {
    const answer = await tools.gate(runnable(seen).actions);
    if (answer.kind === "go") {
      try {
        await treat(seen, runnable);
      } finally {
        await answer.release();
      }
      return;
    }
    const harmless = new Set(answer.meanwhile.map(({ finding }) => finding.id));
    const meanwhile = (planned: Planned): Plan => {
      const plan = runnable(planned);
      return { ...plan, actions: plan.actions.filter(({ finding }) => harmless.has(finding.id)) };
    };
    const last = harmless.size === 0 ? seen : (await treat(seen, meanwhile)).last;
    pause({ reason: answer.reason, message: answer.message }, RETRY_MS.other, last);
  }

  /** Executes a plan; the state shows it meanwhile and afterwards. */
  async function treat(seen: Planned, narrow: HealOrder["narrow"]): Promise<Treated> {
    const started: PlannedAction[] = [];
    const results: ActionResult[] = [];
    let last = seen;
    const sinks: HealOrder["sinks"] = {
      begin: ({ actions }) => {
        started.push(...actions);
        ownPause = undefined;
        attempts.begin(actions);
        apply(store, afterBegin(store.state(), actions));
      },
      result: (result) => results.push(result),
      scanned: (planned) => {
        last = planned;
      },
    };
    try {
      const healed = await tools.heal(seen, { narrow, sinks });
      if (!healed.ok) {
        const { kind, message, next } = healed.refusal;
        pause({ reason: kind ?? "guard", message: `${message} ${next}` }, RETRY_MS[kind ?? "other"], seen);
        return { last: seen, healed };
      }
      const failures = await failuresOf(healed.value);
      record(healed.value.results);
      absorb(healed.value, failures);
      settle(healed.value);
      return { last: healed.value, healed };
    } catch (thrown) {
      const ended = new Set(results.map(({ action }) => action));
      const cutShort = started.filter((action) => !ended.has(action));
      const { code, text } = reason("run-failed", describeError(thrown));
      const failure = { outcome: "failed", reason: text, code, seconds: 0 } as const;
      record([...results, ...cutShort.map((action) => ({ action, ...failure }))]);
      settle(last);
      return { last, healed: refuse(`Healing ended unexpectedly: ${text}.`, "The journal shows what was done.") };
    }
  }

  /** One scan that heals nothing. */
  async function scanOnly(): Promise<Planned> {
    const seen = await tools.scan();
    const failures = await failuresOf(seen);
    if (seen.startedAtMs < newestMs) return seen;
    absorb(seen, failures);
    if (healing === undefined) settle(seen);
    return seen;
  }

  /** Executes what an operator asked for, if the fleet limits allow it. */
  async function healAsked(seen: Planned, narrow: HealOrder["narrow"]): Promise<AskedOutcome> {
    const answer = await tools.gate(narrow(seen).actions);
    if (answer.kind === "wait")
      return { ok: false, refusal: { message: answer.message, next: ASK_LATER }, limit: answer };
    try {
      const { healed } = await treat(seen, narrow);
      return healed;
    } finally {
      await answer.release();
    }
  }

  function record(results: readonly ActionResult[]): void {
    attempts.record(results, tools.policy(), performance.now());
    apply(store, afterHealing(store.state(), results, readClocks()));
  }

  /** While it runs, nothing else is healed; waits for a heal in flight. */
  async function alone<Result>(work: () => Promise<Result>): Promise<Result> {
    while (healing !== undefined) await healing;
    const working = work();
    healing = working
      .then(
        () => undefined,
        () => undefined,
      )
      .finally(() => {
        healing = undefined;
      });
    return await working;
  }

  return {
    run,
    scanOnly,
    alone,
    healAsked,
    /** Settles when no heal is running. */
    idle: async (): Promise<void> => {
      await healing;
    },
  };
}

/** When each finding that failed is tried again, for the command line. */
function outlook({ sightings }: AgentState): Outlook {
  const failed = sightings.map((sighting) => ({ id: sighting.finding.id, ...retriesOf(sighting) }));
  return new Map(
    failed.flatMap(({ id, nextTryAt, givenUp }) => (nextTryAt === undefined ? [] : [[id, { nextTryAt, givenUp }]])),
  );
}

/** When the next pending entry becomes a finding without a change. Overdue ones wait for more evidence. */
function pendingDueAtMs({ diagnosis, snapshot }: Planned, now: ClockReading): number | undefined {
  const waitsMs = diagnosis.pending
    .map(({ becomesFindingAt }) => (becomesFindingAt?.getTime() ?? 0) - snapshot.observedAt.getTime())
    .filter((waitMs) => waitMs > 0);
  return waitsMs.length === 0 ? undefined : now.ms + Math.min(...waitsMs);
}

function readClocks(): ClockReading {
  return { ms: performance.now(), wallClock: new Date() };
}
