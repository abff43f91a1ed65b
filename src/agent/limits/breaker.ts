/** Whether all healing is stopped because the cause is probably not on the nodes. */
export interface BreakerState {
  readonly open: boolean;
  readonly message?: string;
  readonly since?: Date;
}

export const CLOSED: BreakerState = { open: false };

/** The report in a node's condition. */
export interface NodeHealth {
  readonly ill: boolean;
  /** When it last became unhealthy, or healthy. */
  readonly turnedAt: Date;
  readonly heartbeatAt: Date;
}

export interface FleetCounts {
  /** Nodes with a recent report. Nodes without an agent, or with a stale report, do not count. */
  readonly reporting: number;
  readonly ill: number;
  /** Unhealthy nodes that became so recently. */
  readonly turnedIll: number;
}

/** Three missed heartbeats. */
const SILENT_MS = 15 * 60_000;
const WINDOW_MINUTES = 10;
/** The period that counts as "at once", and how long it must be quiet before the breaker closes. */
export const WINDOW_MS = WINDOW_MINUTES * 60_000;

/**
 * Uses the nodes' own clocks: a clock that is some minutes off changes a count by one, which hardly affects the
 * threshold.
 */
export function countReports(reports: readonly NodeHealth[], now: Date): FleetCounts {
  const isWithin = (time: Date, span: number): boolean => Math.abs(now.getTime() - time.getTime()) <= span;
  const reporting = reports.filter(({ heartbeatAt }) => isWithin(heartbeatAt, SILENT_MS));
  const ill = reporting.filter((report) => report.ill);
  const turnedIll = ill.filter(({ turnedAt }) => isWithin(turnedAt, WINDOW_MS));
  return { reporting: reporting.length, ill: ill.length, turnedIll: turnedIll.length };
}

/**
 * Opens when a large share of the fleet became unhealthy at once, and closes below half of the threshold: the nodes are
 * healthy again, or no more became unhealthy for a while. In the second case they are healed, a few at a time.
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

export interface FleetPolicy {
  /** How many nodes may heal disruptively at once. */
  readonly slots: number;
  /** The namespace of the slots' Leases. */
  readonly namespace: string;
  /** The share of unhealthy nodes, 0 to 1, that opens the breaker. */
  readonly breakerShare: number;
  /** Fewer unhealthy nodes than this never open the breaker, so that two of three nodes can still be healed. */
  readonly breakerLeast: number;
}
