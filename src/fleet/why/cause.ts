/** Why a pod does not start, or does not end. */
export interface Cause {
  readonly code: CauseCode;
  /** Of the catalogue of failure classes. */
  readonly class?: string;
  /** One sentence. */
  readonly what: string;
  /** Whether unghost knows how to treat it. Where it does not, the sentence is all that is known. */
  readonly isOurs: boolean;
  readonly evidence: readonly Evidence[];
  readonly since?: Date;
  /** What else it blocks: names of pods, or words. */
  readonly blocks: readonly string[];
  /** What happens without further steps. */
  readonly next: string;
  /** What the operator can do about it. */
  readonly remedy?: string;
}

export interface Evidence {
  readonly source: string;
  readonly fact: string;
}

/**
 * Users script against these.
 *
 * - `sandbox`: creating or removing its sandbox fails. - `volume`: attaching or mounting a volume fails.
 * - `node-gone`, `node-not-ready`, `network-not-ready`: the node. - `image`, `crash`, `config`, `probe`: a container.
 * - `unscheduled`, `gated`: it has no node. - `not-created`: its controller is not allowed to create it.
 * - `finalizer`: its deletion waits for another controller. - `evicted`. - `starting`: nothing has failed yet.
 * - `running`, `finished`: nothing is wrong. - `no-pod`: there is none. - `unknown`: the API shows no reason.
 */
export type CauseCode =
  | "sandbox"
  | "volume"
  | "node-gone"
  | "node-not-ready"
  | "network-not-ready"
  | "image"
  | "crash"
  | "config"
  | "probe"
  | "unscheduled"
  | "gated"
  | "not-created"
  | "finalizer"
  | "evicted"
  | "starting"
  | "running"
  | "finished"
  | "no-pod"
  | "unknown";
