import type { Source } from "../host/source.ts";
import type { CsiSocket } from "./csi-socket.ts";
import type { ContainerId, PodRef, PodUid, SandboxId } from "./ids.ts";
import type { KernelFacts } from "./kernel-facts.ts";
import type { UnattachedVolume } from "./unattached-volume.ts";

/** Everything unghost knows about a node at one moment. Built once by observe(), never changed later. */
export interface Snapshot {
  readonly node: string;
  readonly observedAt: Date;
  readonly boot: Source<Boot>;
  readonly runtime: Runtime;
  readonly cri: Source<CriFacts>;
  readonly containerd: Source<ContainerdFacts>;
  readonly cni: CniFacts;
  readonly netns: Source<readonly NetnsEntry[]>;
  readonly processes: Source<ProcessFacts>;
  /** Whether the pids in `processes` may be signalled; missing where it was not checked. */
  readonly pidNamespace?: PidNamespace;
  readonly logs: Source<LogFacts>;
  readonly kubernetes: Kubernetes;
  /** Missing where no plugin is slow and no failed one is reported. */
  readonly cniDaemons?: Source<readonly CniDaemon[]>;
  /** The daemon of thick multus; missing where multus is not the network, or is thin. */
  readonly multusDaemon?: MultusDaemon;
  /** Missing where there was no reason to check. */
  readonly csi?: Source<readonly CsiSocket[]>;
  /** Absent on a node where nothing is dead or restarts: it is not needed there. */
  readonly kernel?: Source<KernelFacts>;
}

/** The machine's identity for this boot. Wall-clock times are derived and may be wrong; the id and uptime are not. */
export interface Boot {
  readonly id: string;
  readonly uptimeSeconds: number;
  /** Wall clock minus uptime: right only while the wall clock is. */
  readonly startedAt: Date;
}

export interface Runtime {
  readonly endpoint: string;
  readonly reachable: boolean;
  readonly name: string;
  readonly version: string;
  /** The server process behind the socket, when it could be found. */
  readonly process?: { readonly pid: number; readonly startedSecondsAfterBoot: number };
}

export interface CriFacts {
  readonly conditions: readonly RuntimeCondition[];
  /** Directories the runtime itself names in its verbose status; missing where it names none (CRI-O). */
  readonly cniDirs?: CniDirs;
  /** Status was not answered within this time, while Version and the lists were. */
  readonly statusHangsMs?: number;
  readonly sandboxes: readonly Sandbox[];
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
  /** Nanoseconds since 1970 as the runtime gave them. See ZERO_TIME for what a half-made sandbox carries. */
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
  /** How it ended. Read only for containers of sandboxes that are not ready: it is not needed for the others. */
  readonly exit?: ContainerExit;
  /** It should have been read and was not: a ghost may hide behind it. */
  readonly endUnread?: true;
}

export interface ContainerExit {
  readonly exitCode: number;
  readonly reason: string;
  readonly finishedAt: bigint;
  readonly logPath: string;
}

/** containerd's own view: what CRI cannot list. */
export interface ContainerdFacts {
  readonly records: readonly ContainerRecord[];
  readonly tasks: readonly Task[];
  readonly leases: readonly Lease[];
  /** The 2.x sandbox store; empty on 1.x, which has none. */
  readonly sandboxes: readonly SandboxRecord[];
}

export interface ContainerRecord {
  readonly id: string;
  readonly kind: "sandbox" | "container" | "other";
  readonly createdAt: Date | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /** From the CRI extension of a sandbox record, where it could be decoded. */
  readonly sandbox?: SandboxMetadata;
}

/** What the CRI plugin stores with a sandbox: its reserved name and its network. */
export interface SandboxMetadata {
  readonly name: string;
  readonly netnsPath: string;
  readonly hostNetwork: boolean;
  /** Whether CNI ADD completed: from then on containerd insists on a successful DEL. */
  readonly hasCniResult: boolean;
}

export interface SandboxRecord {
  readonly id: string;
  readonly createdAt: Date | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly sandbox?: SandboxMetadata;
}

export interface Task {
  readonly containerId: string;
  readonly pid: number;
  readonly status: "unknown" | "created" | "running" | "stopped" | "paused" | "pausing";
}

export interface Lease {
  readonly id: string;
  readonly createdAt: Date | undefined;
}

/** A daemon that CNI plugins dial over a unix socket to have their work done. */
export interface CniDaemon {
  readonly socket: string;
  /** Types of the plugins that dial it. */
  readonly plugins: readonly string[];
  /** `dead`: the file exists, and no process listens. `listening` does not mean that requests are answered. */
  readonly state: "listening" | "dead" | "missing" | "unknown";
  /** When the socket's file was made: since then somebody has listened. */
  readonly since?: Date;
  /** Who listens, where it is a process of this pid namespace. */
  readonly listener?: { readonly pid: number; readonly startedSecondsAfterBoot: number };
}

export interface CniFacts {
  /** When a file of the configuration directory was last written, added or removed; missing where it was not asked. */
  readonly confChangedAt?: Date;
  readonly conf: Source<CniConfig>;
  readonly results: Source<readonly ResultFile[]>;
  readonly multus: Source<MultusCache>;
  readonly flannel: Source<readonly ScratchFile[]>;
  readonly hostLocal: Source<readonly HostLocalNetwork[]>;
}

/** The network configuration that the runtime would use: the first file of the conf directory in lexical order. */
export interface CniConfig {
  readonly dir: string;
  readonly binDirs: readonly string[];
  readonly file: string;
  readonly network: string;
  readonly cniVersion: string;
  /** Those of the chain, then their IPAM plugins and, under multus, its delegates. */
  readonly plugins: readonly CniPlugin[];
  /** Whether there is a loopback plugin: no file names it, yet containerd 1.x calls it for every pod. */
  readonly loopbackFound?: boolean;
  readonly multus?: MultusConfig;
}

export interface MultusConfig {
  readonly confFile: string;
  /** Where it keeps what it must remember until DEL. */
  readonly cniDir: string;
  /** The daemon does the work and its shim answers DEL with success whatever happens. */
  readonly thick: boolean;
  /** Where the shim reaches the daemon. */
  readonly socket?: string;
  readonly binDir: string;
  /** A file or network to delegate to, where it does not spell its delegates out. */
  readonly clusterNetwork?: string;
}

/** The daemon that does the work of every multus shim on the node. */
export interface MultusDaemon {
  readonly socket: string;
  /** `silent`: a connection is accepted and `/healthz` is not answered. `dead`: the file exists, and no process listens. */
  readonly state: "answers" | "silent" | "dead" | "missing" | "unknown";
  readonly process?: {
    readonly pid: number;
    readonly startedSecondsAfterBoot: number;
    /** By a signal or a debugger. */
    readonly isStopped: boolean;
    /** The one container that it is in; missing where it is in none, or is not proven to be who listens on the socket. */
    readonly containerId?: ContainerId;
  };
  /** Of its cgroup, which its delegates share; missing where it has no limit. */
  readonly cpu?: CpuLimit;
}

export interface CpuLimit {
  readonly milliCpu: number;
  /** How many of the periods in which it wanted to run it had to pause, in percent, since it started. */
  readonly throttledPercent: number;
}

export interface CniPlugin {
  readonly type: string;
  /** Whether an executable of that name is in one of the bin directories. */
  readonly binaryFound: boolean;
}

/**
 * Content of a cache file, judged without trusting it.
 * - `ok`: parses as what it should be. - `empty`: no bytes. - `corrupt`: bytes that do not parse.
 * - `odd`: not a regular file, too large or unreadable; never touched.
 */
export type FileHealth = "ok" | "empty" | "corrupt" | "odd";

export interface ScratchFile {
  readonly path: string;
  readonly sandboxId: SandboxId;
  readonly health: FileHealth;
  readonly modifiedAt: Date;
  readonly size: number;
}

/** `<cache>/results/<network>-<id>-<interface>` */
export interface ResultFile extends ScratchFile {
  readonly network: string;
  readonly interfaceName: string;
  /** With the length of the network they are from: 10.42.0.7/24. Missing where the result names none. */
  readonly addresses?: readonly string[];
  /** The configuration that the result was made with is in it, so that DEL can be called from it. */
  readonly hasConfig?: true;
}

export interface MultusCache {
  readonly dir: string;
  readonly files: readonly MultusFile[];
}

/** `<cniDir>/<sandbox id>`: the delegates of one sandbox. */
export interface MultusFile extends ScratchFile {
  /** It is unghost's own: DEL succeeds on it without calling a delegate. It goes once its sandbox has gone. */
  readonly isMarker?: true;
  /** What the delegates' configuration had on ADD and lacks in what DEL will give them. */
  readonly strippedKeys?: readonly string[];
}

export interface HostLocalNetwork {
  readonly network: string;
  readonly dir: string;
  readonly leases: readonly AddressLease[];
}

export interface AddressLease {
  readonly path: string;
  readonly address: string;
  /** Absent when the file is empty or does not begin with an id: no DEL can ever match it. */
  readonly owner?: { readonly id: string; readonly interfaceName: string };
  readonly modifiedAt: Date;
  readonly size: number;
}

export interface NetnsEntry {
  readonly path: string;
  readonly name: string;
  /** nsfs inode when a namespace is mounted there, undefined for a plain leftover file. */
  readonly inode: bigint | undefined;
  readonly modifiedAt: Date;
}

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

/** Lines of the runtime's and kubelet's logs that name a sandbox or a blocked name. */
export interface LogFacts {
  readonly places: readonly string[];
  readonly lines: readonly LogLine[];
}

export interface LogLine {
  readonly place: string;
  readonly text: string;
}

/**
 * Whether a pid read below `<root>/proc` names the same process to kill(2) as it does there.
 * - `own`: it does.
 * - `foreign`: that /proc shows another pid namespace. Its pids may be read, and must never be signalled: here they name
 *   other processes.
 */
export type PidNamespace = { readonly kind: "own" } | { readonly kind: "foreign"; readonly reason: string };

/** The source of the pods. In this order of trust: the API server, kubelet and its directories, nothing. */
export type Kubernetes =
  | {
      readonly source: "api";
      readonly pods: readonly KnownPod[];
      readonly holds: Holds;
      /** What the cluster calls this node. */
      readonly nodeName?: string;
      /** Volumes that are to be attached to this node and are not; missing where they were not asked for. */
      readonly unattached?: readonly UnattachedVolume[];
      /** The last complaint of each kind about each pod of this node; missing where they were not asked for. */
      readonly events?: readonly PodEvent[];
      /** Kubelet's directories could not be read: then a static pod that the API does not have may be there all the same. */
      readonly kubeletUnread?: boolean;
      /** What of the rest could not be asked. */
      readonly error?: string;
    }
  /** `error`: why the API did not answer; missing where there is none. */
  | { readonly source: "kubelet"; readonly pods: readonly KnownPod[]; readonly error?: string }
  | { readonly source: "none"; readonly error?: string };

/** What people wrote on the cluster's objects to hold unghost back. Pods carry their own mark. */
export interface Holds {
  /** `unghost.dev/paused` on the node: scan, and change nothing. */
  readonly paused: boolean;
  /** `unghost.dev/ignore` on the node. */
  readonly node: boolean;
  /** Namespaces with `unghost.dev/ignore`. */
  readonly namespaces: readonly string[];
}

/** A Warning event about a pod's sandbox or volumes. */
export interface PodEvent {
  readonly namespace: string;
  readonly pod: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  /** Of the pod that it is about; a namesake made later has another. */
  readonly uid?: string;
  /** When it was last reported. */
  readonly at?: Date;
}

export interface KnownPod {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** The uid that its sandboxes carry: of a static pod the hash of its manifest, not its mirror's uid. */
  readonly uid: PodUid;
  readonly phase?: string;
  /** Its deletion was asked for, and is not finished. */
  readonly terminating?: boolean;
  /** `unghost.dev/ignore` on the pod itself. */
  readonly ignored?: boolean;
  /** PersistentVolumeClaims of its namespace that it mounts, where the API was asked. */
  readonly claims?: readonly string[];
  /** The uid of its object, where its sandboxes carry another. */
  readonly objectUid?: string;
  /** The kind of controller that brings it back when it is deleted; none for a bare pod. */
  readonly controller?: string;
  /** Why its containers do not run, such as CrashLoopBackOff. */
  readonly waiting?: readonly string[];
  readonly restarts?: number;
  /** Containers of it ended with an error: whether one is down now, and when the last one ended. */
  readonly crash?: { readonly down: boolean; readonly endedAt?: Date };
  /** It mounts the directories of CSI drivers' sockets; the pod that registers a driver is its node plugin. */
  readonly csi?: { readonly dirs: readonly string[]; readonly registers: boolean };
}
