import type { Diagnosis } from "../diagnose/diagnose.ts";
import { duringRun } from "../evidence/view.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { Plan } from "./plan.ts";
import type { HealPolicy } from "./policy.ts";

/** One scan: what was seen, what it means, and what heal would do about it. It is planned once. */
export interface Planned {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
  readonly plan: Plan;
  /** performance.now() at its start: it shows the node as it was then, at the earliest. */
  readonly startedAtMs: number;
  readonly seconds: number;
}

export interface ScanOptions {
  readonly observe: () => Promise<Snapshot>;
  /** By the first snapshot of the run. */
  readonly policy: (first: Snapshot) => HealPolicy;
  /** Replaces the diagnosis by the runtime's answers, on a node whose runtime does not run. */
  readonly diagnose?: (snapshot: Snapshot, policy: HealPolicy) => Diagnosis | Promise<Diagnosis>;
  /** Limits what was found, for example to the targets of the command line. */
  readonly select?: (diagnosis: Diagnosis) => Diagnosis;
}

/** The run that a later scan is part of. */
interface ScannedWithin {
  /** What the run saw first; see duringRun. */
  readonly first: Snapshot;
  /** What the run knows beside the snapshot. */
  readonly amend?: (diagnosis: Diagnosis, snapshot: Snapshot) => Diagnosis;
}

const NOTHING: Plan = { actions: [], leftAlone: [] };

/** Observe, diagnose, plan: the way of every scan. Changes nothing. */
export async function scanNode(
  { observe, policy, diagnose: diagnosed = diagnoseLoaded, select = (diagnosis) => diagnosis }: ScanOptions,
  within?: ScannedWithin,
): Promise<Planned> {
  const startedAtMs = performance.now();
  const snapshot = await observe();
  const allowed = policy(within?.first ?? snapshot);
  const found = select(await diagnosed(snapshot, duringRun(allowed, within?.first, snapshot)));
  const diagnosis = within?.amend?.(found, snapshot) ?? found;
  const plan = await planFor(diagnosis, allowed);
  return { snapshot, diagnosis, plan, startedAtMs, seconds: (performance.now() - startedAtMs) / 1000 };
}

/** Loaded once there is something to judge: until then the runtime prepares its answers. */
async function diagnoseLoaded(snapshot: Snapshot, policy: HealPolicy): Promise<Diagnosis> {
  const { diagnose } = await import("../diagnose/diagnose.ts");
  return diagnose(snapshot, policy);
}

/** The planner is loaded only if there is something to plan: a scan of a healthy node does not need it. */
async function planFor(diagnosis: Diagnosis, policy: HealPolicy): Promise<Plan> {
  if (diagnosis.findings.length + diagnosis.dead.length === 0) return NOTHING;
  const { planHealing } = await import("./plan.ts");
  return planHealing(diagnosis, policy);
}
