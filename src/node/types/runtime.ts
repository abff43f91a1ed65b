import type { ContainerId, NamedPod, PodRef, SandboxId } from "./ids.ts";

export interface Runtime {
  readonly endpoint: string;
  readonly reachable: boolean;
  readonly name: string;
  readonly version: string;
  /** The server process behind the socket, if it was found. */
  readonly process?: ProcessId;
}

export interface CriFacts {
  readonly conditions: readonly RuntimeCondition[];
  /** Directories from the runtime's verbose status; missing if it has none (CRI-O). */
  readonly cniDirs?: CniDirs;
  /** Status was not answered within this time, while Version and the lists were. */
  readonly statusHangsMs?: number;
  readonly sandboxes: readonly Sandbox[];
  /** A sandbox may be missing: the list was too long for one answer, or contradicts that of the containers. */
  readonly sandboxesIncomplete?: true;
  readonly containers: readonly Container[];
}

export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

export interface CniDirs {
  readonly conf: string;
  readonly bin: readonly string[];
}

export type SandboxState = "ready" | "notReady";

export interface Sandbox {
  readonly id: SandboxId;
  readonly pod: PodRef;
  readonly state: SandboxState;
  /** Nanoseconds since 1970 from the runtime. See ZERO_TIME for an incomplete sandbox. */
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Go's zero time in Unix nanoseconds after int64 overflow: a sandbox that was never completely created. */
export const ZERO_TIME = -6795364578871345152n;

export type ContainerState = "created" | "running" | "exited" | "unknown";

export interface Container {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly name: string;
  readonly attempt: number;
  readonly state: ContainerState;
  readonly createdAt: bigint;
  readonly labels: Readonly<Record<string, string>>;
  /** How it ended. Read only for containers of NotReady sandboxes. */
  readonly exit?: ContainerExit;
  /** The exit should have been read and was not: a ghost may be missed because of it. */
  readonly endUnread?: true;
}

export interface ContainerExit {
  readonly exitCode: number;
  readonly reason: string;
  readonly finishedAt: bigint;
  readonly logPath: string;
}

/** containerd's own records, which CRI does not list. */
export interface ContainerdFacts {
  readonly records: readonly ContainerRecord[];
  readonly tasks: readonly Task[];
  readonly leases: readonly Lease[];
  /** The 2.x sandbox store; empty on 1.x, which has none. */
  readonly sandboxes: readonly SandboxRecord[];
}

export interface ContainerRecord extends SandboxRecord {
  readonly kind: "sandbox" | "container" | "other";
}

/** What the CRI plugin stores with a sandbox: its reserved name and its network. */
export interface SandboxMetadata {
  readonly name: string;
  readonly netnsPath: string;
  readonly hostNetwork: boolean;
  /** Whether CNI ADD completed: from then on containerd requires a successful DEL. */
  readonly hasCniResult: boolean;
}

export interface SandboxRecord {
  readonly id: string;
  readonly createdAt: Date | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** From the CRI extension of a sandbox, if it could be decoded. */
  readonly sandbox?: SandboxMetadata;
}

export interface Task {
  readonly containerId: string;
  readonly pid: number;
  /** `unanswered`: its shim did not answer containerd. */
  readonly status: "unanswered" | "unknown" | "created" | "running" | "stopped" | "paused" | "pausing";
}

export interface Lease {
  readonly id: string;
  readonly createdAt: Date | undefined;
}

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
  readonly kubelet?: ProcessId;
}

/** A pid may be reused; pid and start time together identify one process. */
export interface ProcessId {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
}

export interface ProcessRef extends ProcessId {
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
  /** Its standard output is a pipe: the call for which it was started has not ended. */
  readonly holdsResultPipe?: true;
}

export interface ShimProcess extends ProcessRef {
  readonly id: string;
  /** Stopped by a signal or a debugger. */
  readonly isStopped?: true;
  readonly childPids: readonly number[];
}
