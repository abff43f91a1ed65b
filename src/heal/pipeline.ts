import { setTimeout as sleep } from "node:timers/promises";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { OpenCluster } from "../kube/cluster-credentials.ts";
import type { Plan, PlannedAction } from "../plan/plan.ts";
import type { Snapshot } from "../snapshot/types/snapshot.ts";
import { type Healing, healNode } from "./execution/heal-node.ts";
import type { ActionResult } from "./execution/run-action.ts";
import { openRuntime } from "./execution/runtime-access.ts";
import { openHealSession, type SessionOptions } from "./execution/session.ts";
import type { Interruption, Waits } from "./execution/waits.ts";
import type { Recovery } from "./journal/recover.ts";
import { type Outcome, ok } from "./outcome.ts";

/** A snapshot and its diagnosis. */
export interface Scanned {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

export interface Planned extends Scanned {
  readonly plan: Plan;
}

/** The options of the command line, the boot hook and the agent: where to scan, what is allowed, where to report. */
export interface PipelineOptions {
  /** `first`: what the run saw first; see duringRun. */
  readonly scan: (first: Snapshot) => Promise<Scanned>;
  /** What the policy allows for a diagnosis. Also called for later scans of the same run. */
  readonly plan: (diagnosis: Diagnosis) => Plan;
  readonly session: Omit<SessionOptions, "sleep">;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  /** Missing if nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
  readonly interruption?: Interruption;
  /** Called before the plan is executed: the session is open and the plan is current. */
  readonly onBegin?: (planned: Planned, recoveries: readonly Recovery[]) => void;
  readonly onResult: (result: ActionResult) => void;
  /** Called once for an action that the others do not wait for any longer. */
  readonly onSlow?: (action: PlannedAction) => void;
  readonly onWarning: (warning: string) => void;
}

/** A run that waited longer than this for the lock scans again, because another run may have changed the node. */
const STALE_AFTER_MS = 150;

/**
 * Heals and verifies: opens a session, scans and plans again if another run may have made the plan stale, executes it,
 * and scans again. The only way from a plan to a changed node.
 */
export async function runPipeline(shown: Planned, options: PipelineOptions): Promise<Outcome<Healing>> {
  const { cniCacheDir, session: sessionOptions, waits } = options;
  const askedAt = performance.now();
  const access = { hostRoot: sessionOptions.hostRoot, cniCacheDir, waits };
  const runtime = openRuntime(shown.snapshot, access);
  // Starts reading the facts for the proofs while the session opens.
  runtime.facts.begin();
  try {
    const opened = await openHealSession({ ...sessionOptions, sleep });
    if (!opened.ok) return opened;
    const session = opened.value;
    try {
      const isStale = session.recoveries.length > 0 || performance.now() - askedAt > STALE_AFTER_MS;
      const planned = isStale ? await scanAndPlan(shown.snapshot, options) : shown;
      if (isStale) runtime.facts.renew();
      options.onBegin?.(planned, session.recoveries);
      const healing = await healNode(planned, { ...options, session, runtime, sleep });
      for (const warning of session.journal.warnings) options.onWarning(warning);
      return ok(healing);
    } finally {
      await session.close();
    }
  } finally {
    runtime.close();
  }
}

async function scanAndPlan(first: Snapshot, { scan, plan }: PipelineOptions): Promise<Planned> {
  const scanned = await scan(first);
  return { ...scanned, plan: plan(scanned.diagnosis) };
}
