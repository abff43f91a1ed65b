import type { FleetPolicy } from "./fleet-policy.ts";

/** Whether all acting is stopped because it is hardly the nodes themselves that are ill. */
export interface BreakerState {
  readonly open: boolean;
  readonly message?: string;
  readonly since?: Date;
}

export const CLOSED: BreakerState = { open: false };

/** What one node reports in its condition. */
export interface NodeHealth {
  readonly ill: boolean;
  /** When it last became ill, or well. */
  readonly turnedAt: Date;
  readonly heartbeatAt: Date;
}

export interface FleetCounts {
  /** Nodes with a recent report. Nodes without an agent, or with a stale report, are not evidence of anything. */
  readonly reporting: number;
  readonly ill: number;
  /** Of those that are ill: the ones that became so lately. */
  readonly turnedIll: number;
}

/** Three heartbeats that did not come. */
const SILENT_MS = 15 * 60_000;
const WINDOW_MINUTES = 10;
/** How close together is "at once", and how long it must be quiet before the breaker closes. */
export const WINDOW_MS = WINDOW_MINUTES * 60_000;

/** By the nodes' own clocks: some minutes that one is off change a count by one, and a threshold decides. */
export function countReports(reports: readonly NodeHealth[], now: Date): FleetCounts {
  const isWithin = (time: Date, span: number): boolean => Math.abs(now.getTime() - time.getTime()) <= span;
  const reporting = reports.filter(({ heartbeatAt }) => isWithin(heartbeatAt, SILENT_MS));
  const ill = reporting.filter((report) => report.ill);
  const turnedIll = ill.filter(({ turnedAt }) => isWithin(turnedAt, WINDOW_MS));
  return { reporting: reporting.length, ill: ill.length, turnedIll: turnedIll.length };
}

/**
 * Opens when an implausible share of the fleet turned ill at once, and closes when that is less than half as bad: the
 * nodes got well, or no more of them fell ill for a while. In the second case they are healed, a few at a time.
 */
export function decideBreaker(
  before: BreakerState,
  { reporting, turnedIll }: FleetCounts,
  { breakerShare, breakerLeast }: Pick<FleetPolicy, "breakerShare" | "breakerLeast">,
  now: Date,
): BreakerState {
  const isImplausible = (part: number): boolean =>
    turnedIll > 0 && turnedIll >= breakerLeast * part && turnedIll / reporting >= breakerShare * part;
  if (before.open) return isImplausible(1 / 2) ? before : CLOSED;
  if (!isImplausible(1)) return CLOSED;
  return {
    open: true,
    since: now,
    message: `${turnedIll} of ${reporting} nodes became unhealthy within ${WINDOW_MINUTES} minutes: the cause is probably shared, such as the control plane or the network; healing is paused until the number drops`,
  };
}
