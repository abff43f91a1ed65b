import type { PodUid, SandboxId } from "../ids.ts";

export interface ProcessFacts {
  /** CNI plugin processes that are proven to be this runtime's; their environment names the call. */
  readonly plugins: readonly PluginProcess[];
  /** Of this runtime, by proof. */
  readonly shims: readonly ShimProcess[];
  /** Processes whose cgroup is that of a container or sandbox, by its full id. */
  readonly byContainer: ReadonlyMap<string, readonly number[]>;
  /**
   * Sandboxes and containers of other runtimes that are alive on this machine (Docker, a second containerd), where there
   * are any. They are not ghosts, and files with their ids are theirs.
   */
  readonly othersIds?: ReadonlySet<string>;
  /** Inodes of all network namespaces some process lives in. */
  readonly netnsInodes: ReadonlySet<bigint>;
  /** Pids of processes whose network namespace may not be read, where there are any: each may live in any of them. */
  readonly netnsUnread?: readonly number[];
  readonly kubelet?: { readonly pid: number; readonly startedSecondsAfterBoot: number };
}

/** A pid may be reused; pid and start time together name one process forever. */
export interface ProcessRef {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly ageSeconds: number;
}

/**
 * How a plugin process is known to be the runtime's: it descends from the runtime, or from the daemon of thick multus, or
 * runs a program of the CNI directories.
 */
export type PluginOrigin = "runtime" | "multus-daemon" | "cni-directory";

export interface PluginProcess extends ProcessRef {
  readonly origin: PluginOrigin;
  readonly parentPid: number;
  readonly command: string;
  readonly cniCommand: string;
  readonly sandboxId: SandboxId;
  readonly interfaceName: string;
  readonly netns: string;
  readonly pod?: { readonly namespace: string; readonly name: string; readonly uid: PodUid | undefined };
}

export interface ShimProcess extends ProcessRef {
  readonly parentPid: number;
  readonly id: string;
  readonly childPids: readonly number[];
}
