export type Sleep = (milliseconds: number) => Promise<unknown>;

/** Timeouts of heal. */
export interface Waits {
  /** Read-only calls, which answer quickly. */
  readonly queryMs: number;
  /** Stopping and removing: kubelet waits 2 min, and a DEL that is cut short is worse than a slow one. */
  readonly actMs: number;
  /** How long to wait for kubelet once the obstacle is gone; it retries about every 13 s. */
  readonly kubeletMs: number;
  /** How long a CSI driver's socket is given to come back: kubelet makes the sandbox, then starts the plugin. */
  readonly socketMs: number;
  /** Between asking a process to end and ending it. */
  readonly termMs: number;
  /** For the runtime to roll a creation back once its plugin has ended. */
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

/** How a run is asked to end early. */
export interface Interruption {
  /** Nothing further is started. */
  readonly stop: AbortSignal;
  /** What is under way is not waited for any longer. */
  readonly giveUp: AbortSignal;
}

/** A run without interruption. */
export function uninterrupted(): Interruption {
  return { stop: new AbortController().signal, giveUp: new AbortController().signal };
}
