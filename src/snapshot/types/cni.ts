import type { Source } from "../../host/source.ts";
import type { ContainerId, SandboxId } from "../ids.ts";

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
