import type { Source } from "../../host/source.ts";
import type { CniDaemon, CniFacts, MultusDaemon, NetnsEntry } from "./cni.ts";
import type { Kubernetes } from "./kubernetes.ts";
import type { ProcessFacts } from "./processes.ts";
import type { ContainerdFacts, CriFacts, Runtime } from "./runtime.ts";

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
  /** Missing if there was no reason to check. */
  readonly csi?: Source<readonly CsiSocket[]>;
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

/** Problems reported in the kernel's own log. */
export interface KernelFacts {
  /** CPUs that made no progress: RCU stalls and soft lockups. */
  readonly stalls: KernelSign;
  /** Tasks in uninterruptible sleep for minutes. */
  readonly hungTasks: KernelSign;
  /** Network devices that cannot be removed because they are still referenced. */
  readonly netdeviceWaits: KernelSign;
  /** Whether the ring buffer still has its first record: otherwise the counts are a minimum. */
  readonly sinceBoot: boolean;
}

export interface KernelSign {
  readonly count: number;
  /** The text of the last line. */
  readonly last?: string;
}
