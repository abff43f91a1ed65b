import type { Source } from "../../host/source.ts";
import type { ContainerId, SandboxId } from "./ids.ts";
import type { ProcessId } from "./runtime.ts";

/** A daemon that CNI plugins call over a unix socket. */
export interface CniDaemon {
  readonly socket: string;
  /** Types of the plugins that connect to it. */
  readonly plugins: readonly string[];
  /** `dead`: the file exists, and no process listens. `listening` does not mean that requests are answered. */
  readonly state: "listening" | "dead" | "missing" | "unknown";
  /** When the socket's file was created. */
  readonly since?: Date;
  /** The listening process, if it is in this pid namespace. */
  readonly listener?: ProcessId;
}

export interface CniFacts {
  /** When a file of the configuration directory was last written, added or removed; missing if it was not read. */
  readonly confChangedAt?: Date;
  readonly conf: Source<CniConfig>;
  readonly results: Source<readonly ResultFile[]>;
  readonly multus: Source<MultusCache>;
  readonly flannel: Source<readonly ScratchFile[]>;
  readonly hostLocal: Source<readonly HostLocalNetwork[]>;
  /** Types of the plugins and IPAM plugins in all network configurations; missing if they were not read. */
  readonly addressPlugins?: readonly string[];
  /** Missing if nothing waits there, or there is no CNI guard. */
  readonly guardQueue?: GuardQueue;
}

/** DELs that failed, and that the CNI guard repeats. */
export interface GuardQueue {
  readonly waiting: number;
  readonly oldest: {
    readonly sandboxId: string;
    readonly interface: string;
    readonly plugin: string;
    readonly since: Date;
    /** The plugin's own message. */
    readonly words: string;
  };
}

/** The network configuration that the runtime would use: the first file of the conf directory in lexical order. */
export interface CniConfig {
  readonly dir: string;
  readonly binDirs: readonly string[];
  readonly file: string;
  /** Its name, by which libcni caches results; missing if the file has none. */
  readonly network?: string;
  /** Those of the chain, then their IPAM plugins and, under multus, its delegates. */
  readonly plugins: readonly CniPlugin[];
  readonly multus?: MultusConfig;
}

export interface MultusConfig {
  readonly confFile: string;
  /** Its cache directory. */
  readonly cniDir: string;
  /** The daemon does the work, and its shim answers DEL with success in any case. */
  readonly thick: boolean;
  /** The daemon's socket for the shim. */
  readonly socket?: string;
  readonly binDir: string;
}

/** The daemon that does the work of every multus shim on the node. */
export interface MultusDaemon {
  readonly socket: string;
  /**
   * `silent`: a connection is accepted and `/healthz` is not answered. `dead`: the file exists, and no process listens.
   */
  readonly state: "answers" | "silent" | "dead" | "missing" | "unknown";
  readonly process?: ProcessId & {
    /** By a signal or a debugger. */
    readonly isStopped: boolean;
    /** Its container; missing if it is in none, or is not proven to listen on the socket. */
    readonly containerId?: ContainerId;
  };
  /** Of its cgroup, which its delegates share; missing without a limit. */
  readonly cpu?: CpuLimit;
}

export interface CpuLimit {
  readonly milliCpu: number;
  /** The percentage of throttled periods during the scan; 0 if no call waits for the daemon. */
  readonly throttledPercent: number;
}

export interface CniPlugin {
  readonly type: string;
  /** Whether an executable of that name is in one of the bin directories. */
  readonly binaryFound: boolean;
}

/**
 * The state of a cache file.
 * - `ok`: parses as expected. - `empty`: no bytes. - `corrupt`: bytes that do not parse.
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
  /** With the prefix length: 10.42.0.7/24. Missing if the result has none. */
  readonly addresses?: readonly string[];
  /** The file contains the configuration of the ADD, so that DEL can be called with it. */
  readonly hasConfig?: true;
}

export interface MultusCache {
  readonly dir: string;
  readonly files: readonly MultusFile[];
}

/** `<cniDir>/<sandbox id>`: the delegates of one sandbox. */
export interface MultusFile extends ScratchFile {
  /** unghost's own marker: DEL succeeds with it without calling a delegate. It is removed after its sandbox. */
  readonly isMarker?: true;
  /** Settings that the delegates' configuration had on ADD and lacks on DEL. */
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
  /** Absent if the file is empty or does not start with an id: no DEL can ever match it. */
  readonly owner?: { readonly id: string; readonly interfaceName: string };
  readonly modifiedAt: Date;
  readonly size: number;
}

export interface NetnsEntry {
  readonly path: string;
  readonly name: string;
  /** The nsfs inode if a namespace is mounted there, undefined for a regular file. */
  readonly inode: bigint | undefined;
  readonly modifiedAt: Date;
}

/** One network configuration of the directory, used or not. */
export interface CniConfFile {
  readonly file: string;
  readonly cniVersion?: string;
  readonly plugins: readonly string[];
  /** Plugins without an executable. */
  readonly notInstalled: readonly string[];
  /** Kubeconfigs that it names. */
  readonly kubeconfigs: readonly string[];
  /** Those that do not exist. */
  readonly missingKubeconfigs: readonly string[];
}

/** The first configuration, if it cannot work while a later one can. */
export interface ConfInFront {
  readonly file: string;
  readonly fault: string;
  /** A later file without a fault. */
  readonly working: string;
}
