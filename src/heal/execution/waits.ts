import { reason } from "../../evidence/finding.ts";

export type Sleep = (milliseconds: number) => Promise<unknown>;

/** Timeouts of heal. */
export interface Waits {
  /** Read-only calls, which answer quickly. */
  readonly queryMs: number;
  /** Stop and remove: kubelet waits 2 min, and an aborted DEL is worse than a slow one. */
  readonly actMs: number;
  /** How long to wait for kubelet once the obstacle is gone; it retries about every 13 s. */
  readonly kubeletMs: number;
  /** How long to wait for a CSI driver's socket: kubelet creates the sandbox, then starts the plugin. */
  readonly socketMs: number;
  /** Between SIGTERM and SIGKILL. */
  readonly termMs: number;
  /** For the runtime's rollback of a creation after its plugin has ended. */
  readonly rollbackMs: number;
  /** How long a running plugin gets to exit before what it may hold is checked. */
  readonly pluginMs: number;
}

export const DEFAULT_WAITS: Waits = {
  queryMs: 10_000,
  actMs: 130_000,
  kubeletMs: 45_000,
  socketMs: 60_000,
  termMs: 3000,
  rollbackMs: 5000,
  pluginMs: 5000,
};

/** How a run is stopped early. */
export interface Interruption {
  /** No further step is started. */
  readonly stop: AbortSignal;
  /** Steps in flight are not waited for any longer. */
  readonly giveUp: AbortSignal;
}

export const INTERRUPTED = reason("interrupted", "the run was interrupted before it came to this");

/** A run without interruption. */
export function uninterrupted(): Interruption {
  return { stop: new AbortController().signal, giveUp: new AbortController().signal };
}
