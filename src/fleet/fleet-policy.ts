export interface FleetPolicy {
  /** How many nodes may heal disruptively at once. */
  readonly slots: number;
  /** The namespace of the slots' Leases. */
  readonly namespace: string;
  /** The share of ill nodes, 0 to 1, from which on it is not the nodes that are ill. */
  readonly breakerShare: number;
  /** Fewer ill nodes than this never open the breaker: two of three is a bad night, not a fleet. */
  readonly breakerLeast: number;
}
