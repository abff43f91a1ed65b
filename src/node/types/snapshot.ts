import type { Source } from "../../host/source.ts";
import type { ApiPod, ClusterFacts, Holder, PodEvent, UnattachedVolume } from "../../kube/cluster-facts.ts";
import type { CniDaemon, CniFacts, FileHealth, MultusDaemon, NetnsEntry } from "./cni.ts";
import type { PodUid } from "./ids.ts";
import type { PointedAt } from "./pointed-at.ts";
import type { ContainerdFacts, ContainerRecord, CriFacts, ProcessFacts, Runtime } from "./runtime.ts";

/** Everything that unghost knows about a node at one moment. Built once by observe(), never changed later. */
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
  /** Whether the pids in `processes` may be signalled; missing if it was not checked. */
  readonly pidNamespace?: PidNamespace;
  readonly logs: Source<LogFacts>;
  readonly kubernetes: Kubernetes;
  /** Missing if no plugin is slow and no failure is reported. */
  readonly cniDaemons?: Source<readonly CniDaemon[]>;
  /** The daemon of thick multus; missing if multus is not the network, or is thin. */
  readonly multusDaemon?: MultusDaemon;
  /** Mounts that do not answer: nothing below them was read. */
  readonly hungMounts?: readonly { readonly point: string; readonly type: string }[];
  /** Missing if there was no reason to check. */
  readonly csi?: Source<readonly CsiSocket[]>;
  /** Missing if nothing waits and nothing fails. */
  readonly inotify?: Source<InotifyUse>;
  /** Missing if no error in the logs points at any of it. */
  readonly pointedAt?: PointedAt;
  /** Absent if no kubelet runs that has a directory of static pods. */
  readonly staticManifests?: Source<readonly StaticManifest[]>;
  /** Missing without an API server. */
  readonly podVolumes?: Source<readonly PodVolumes[]>;
  /** Absent on a node where nothing is dead or restarts, because it is not needed there. */
  readonly kernel?: Source<KernelFacts>;
}

/** The identity of this boot. Wall-clock times are derived and may be wrong; the id and uptime are not. */
export interface Boot {
  readonly id: string;
  readonly uptimeSeconds: number;
  /** Wall clock minus uptime: only as correct as the wall clock. */
  readonly startedAt: Date;
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
 * Whether a pid read below `<root>/proc` refers to the same process for kill(2).
 * - `own`: it does.
 * - `foreign`: that /proc shows another pid namespace. Its pids may be read, and must never be signalled, because they
 *   refer to other processes here.
 */
export type PidNamespace = { readonly kind: "own" } | { readonly kind: "foreign"; readonly reason: string };

/** The socket through which kubelet and sidecars reach a CSI driver's node plugin. */
export interface CsiSocket {
  readonly driver: string;
  readonly dir: string;
  readonly path: string;
  /** `dead`: the file exists, and no process listens. */
  readonly state: "listening" | "dead" | "missing";
  /** The registration socket exists: uninstalling a driver removes it. */
  readonly registered: boolean;
}

/** The inotify instances of processes of root, which share one limit. */
export interface InotifyUse {
  /** fs.inotify.max_user_instances */
  readonly limit: number;
  /** Open descriptors: one that a process shares with its child counts twice. */
  readonly used: number;
  /** The programs with the most. */
  readonly holders: readonly { readonly name: string; readonly count: number }[];
}

/** A file from which kubelet makes a static pod. */
export interface StaticManifest {
  readonly path: string;
  /** Without the node's name, which kubelet appends. */
  readonly name: string;
  readonly namespace: string;
  readonly modifiedAt: Date;
}

/** Kubelet's directory of a pod that the API server is deleting, or does not have. */
export interface PodVolumes {
  readonly uid: PodUid;
  readonly path: string;
  /** When a volume was last added or removed. */
  readonly changedAt: Date;
  /** What is mounted below it. */
  readonly mounts: readonly string[];
}

/** Problems reported in the kernel's own log. */
export interface KernelFacts {
  /** CPUs that made no progress: RCU stalls and soft lockups. */
  readonly stalls: KernelSign;
  /** Tasks in uninterruptible sleep for minutes. */
  readonly hungTasks: KernelSign;
  /** Network devices that cannot be removed because they are still referenced. */
  readonly netdeviceWaits: KernelSign;
  /** Signals of runc that AppArmor refused; missing if there are none. */
  readonly signalsDenied?: KernelSign;
  /** Whether the ring buffer still has its first record: otherwise the counts are a minimum. */
  readonly sinceBoot: boolean;
}

export interface KernelSign {
  readonly count: number;
  /** The text of the last line. */
  readonly last?: string;
}

export type { Holder, PodEvent, UnattachedVolume };

/** The source of the pods, in order of precedence: the API server, kubelet and its directories, none. */
export type Kubernetes =
  | ({
      readonly source: "api";
      readonly pods: readonly KnownPod[];
      readonly holds: Holds;
      /** Kubelet's directories could not be read: then a static pod without a mirror pod may still exist. */
      readonly kubeletUnread?: boolean;
      /** What else could not be read. */
      readonly error?: string;
    } & Partial<Pick<ClusterFacts, "nodeName" | "unattached" | "unattachedUnread" | "events">>)
  /** `error`: why the API did not answer; missing if there is none. */
  | { readonly source: "kubelet"; readonly pods: readonly KnownPod[]; readonly error?: string }
  /** `unused`: not asked on purpose, by --no-kube. */
  | { readonly source: "none"; readonly error?: string; readonly unused?: true };

/** Labels and annotations in the cluster that make unghost skip objects. Pods have their own field. */
export interface Holds {
  /** `unghost.dev/paused` on the node: scan, and change nothing. */
  readonly paused: boolean;
  /** `unghost.dev/ignore` on the node. */
  readonly node: boolean;
  /** Namespaces with `unghost.dev/ignore`. */
  readonly namespaces: readonly string[];
  /** By what the node is in maintenance, such as `the condition DrainInProgress`: an agent does nothing disruptive. */
  readonly maintenance?: string;
}

/** A pod as the API or the kubelet lists it; of one that has only a directory the rest is missing. */
export interface KnownPod extends Partial<Omit<ApiPod, "uid">> {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly uid: PodUid;
}

/** The facts about a node without its runtime. */
export interface OfflineFacts {
  readonly observedAt: Date;
  readonly boot: Source<Boot>;
  readonly metadata: Source<MetadataFile>;
  readonly processes: Source<ProcessFacts>;
  readonly cni: Pick<CniFacts, "results" | "hostLocal">;
  /** The version of the containerd that will be started, if known. */
  readonly containerdVersion?: string;
}

/** Content of containerd's database, read without containerd. */
export interface MetadataFile extends StoredRecords {
  /** As a path of the node. */
  readonly path: string;
  /** Where the file is damaged. The records are then those that could still be read. */
  readonly damage: readonly Damage[];
  /** The file is empty: containerd treats it as new. */
  readonly isEmpty: boolean;
  /** Ids of containers with a directory; undefined if it could not be listed. */
  readonly containerDirs: ReadonlySet<string> | undefined;
  /** Files with the state of a container that do not contain it; missing if there are none. */
  readonly brokenStatusFiles?: readonly BrokenStatusFile[];
}

export interface BrokenStatusFile {
  readonly containerId: string;
  /** As a path of the node. */
  readonly path: string;
  readonly health: Extract<FileHealth, "empty" | "corrupt">;
  readonly modifiedAt: Date;
}

/** What containerd stores of Kubernetes' sandboxes and containers. */
export interface StoredRecords extends Pick<ContainerdFacts, "sandboxes" | "leases"> {
  readonly records: readonly StoredContainer[];
}

/** A record of containerd with what its file has beyond the types of the API. */
export interface StoredContainer extends ContainerRecord {
  /** Of a container record, if its metadata could be decoded. */
  readonly container?: { readonly name: string; readonly sandboxId: string };
}

/** One page at which a database is not valid. */
export interface Damage {
  readonly page: number;
  readonly reason: string;
}
