import { pause } from "../../host/poll.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";

/** Time as a parameter, so that tests can simulate a day. */
export interface Timing {
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number;
  readonly now: () => Date;
  /** Ends early, without an error, when the signal is aborted. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** 0 to 1. */
  readonly random: () => number;
}

export const REAL_TIMING: Timing = {
  clock: () => performance.now(),
  now: () => new Date(),
  sleep: pause,
  random: Math.random,
};

/** What the parts of the agent that use the cluster have in common. */
export interface ClusterUse {
  readonly openCluster: OpenCluster;
  /** The node's name in the cluster. */
  readonly nodeName: () => string;
  readonly timing: Timing;
  readonly warn: (message: string, detail: string) => void;
}
