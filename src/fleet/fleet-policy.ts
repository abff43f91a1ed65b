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
