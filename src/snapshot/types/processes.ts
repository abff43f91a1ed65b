import type { NamedPod, SandboxId } from "../ids.ts";

export interface ProcessFacts {
  /** CNI plugin processes that are proven to belong to this runtime; their environment contains the call. */
  readonly plugins: readonly PluginProcess[];
  /** Proven to belong to this runtime. */
  readonly shims: readonly ShimProcess[];
  /** Processes whose cgroup is that of a container or sandbox, by its full id. */
  readonly byContainer: ReadonlyMap<string, readonly number[]>;
  /**
   * Live sandboxes and containers of other runtimes on this machine (Docker, a second containerd), if any. They are not
   * ghosts, and files with their ids belong to them.
   */
  readonly othersIds?: ReadonlySet<string>;
  /** Inodes of all network namespaces with a process. */
  readonly netnsInodes: ReadonlySet<bigint>;
  /** Pids of processes whose network namespace is unreadable, if any: each may be in any of them. */
  readonly netnsUnread?: readonly number[];
  readonly kubelet?: { readonly pid: number; readonly startedSecondsAfterBoot: number };
}

/** A pid may be reused; pid and start time together identify one process. */
export interface ProcessRef {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly ageSeconds: number;
}

/**
 * Why a plugin process belongs to the runtime: it descends from the runtime, or from the daemon of thick multus, or
 * runs a program of the CNI directories.
 */
export type PluginOrigin = "runtime" | "multus-daemon" | "cni-directory";

export interface PluginProcess extends ProcessRef {
  readonly origin: PluginOrigin;
  readonly command: string;
  readonly cniCommand: string;
  readonly sandboxId: SandboxId;
  readonly netns: string;
  readonly pod?: NamedPod;
}

export interface ShimProcess extends ProcessRef {
  readonly id: string;
  readonly childPids: readonly number[];
}
