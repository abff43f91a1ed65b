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

/** What was observed, and its diagnosis. */
export interface Scanned {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

export interface Planned extends Scanned {
  readonly plan: Plan;
}

/** What the command line, the boot hook and the agent each bring: where to scan, what is allowed, where to report. */
export interface PipelineOptions {
  readonly scan: () => Promise<Scanned>;
  /** What policy allows for a diagnosis. Also asked about what later scans of the same run find. */
  readonly plan: (diagnosis: Diagnosis) => Plan;
  readonly session: Omit<SessionOptions, "sleep">;
  readonly concurrency: number;
  readonly cniCacheDir: string;
  readonly waits?: Waits;
  /** Missing where nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
  readonly interruption?: Interruption;
  /** The session is open and the plan is current: it is about to be carried out. */
  readonly onBegin?: (planned: Planned, recoveries: readonly Recovery[]) => void;
  readonly onResult: (result: ActionResult) => void;
  /** Called once for an action that the others do not wait for any longer. */
  readonly onSlow?: (action: PlannedAction) => void;
  readonly onWarning: (warning: string) => void;
}

/** A run that waited longer than this for the lock scans again: another run may have changed the node. */
const STALE_AFTER_MS = 150;

/**
 * Heals and verifies: opens a session, scans and plans again where another run may have made the plan stale, carries it
 * out, and scans again. The only way from a plan to a changed node.
 */
export async function runPipeline(shown: Planned, options: PipelineOptions): Promise<Outcome<Healing>> {
  const { cniCacheDir, session: sessionOptions, waits } = options;
  const askedAt = performance.now();
  const access = { hostRoot: sessionOptions.hostRoot, cniCacheDir, ...(waits === undefined ? {} : { waits }) };
  const runtime = openRuntime(shown.snapshot, access);
  // What is proven again before each change is read while the session opens.
  runtime.facts.begin();
  try {
    const opened = await openHealSession({ ...sessionOptions, sleep });
    if (!opened.ok) return opened;
    const session = opened.value;
    try {
      const isStale = session.recoveries.length > 0 || performance.now() - askedAt > STALE_AFTER_MS;
      const planned = isStale ? await scanAndPlan(options) : shown;
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

async function scanAndPlan({ scan, plan }: PipelineOptions): Promise<Planned> {
  const scanned = await scan();
  return { ...scanned, plan: plan(scanned.diagnosis) };
}
