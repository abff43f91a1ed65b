import type { ConfInFront } from "./cni.ts";

/** What was read because an error in the logs points at it. */
export interface PointedAt {
  /** The row `memory` of /proc/cgroups; missing on cgroup v2. */
  readonly memoryCgroups?: number;
  readonly routes: readonly HostRoute[];
  readonly confInFront?: ConfInFront;
  /** Cgroups of the pods that lines about cgroups name. */
  readonly podCgroups: readonly PodCgroup[];
  readonly trust: PluginTrust;
}

/** An IPv4 route of the node. */
export interface HostRoute {
  readonly device: string;
  readonly destination: string;
  readonly prefix: number;
  /** Without a gateway. */
  readonly isDirect: boolean;
}

export interface PodCgroup {
  readonly uid: string;
  readonly path: string;
  /** Of its processes, and of those in the cgroups below. */
  readonly pids: readonly number[];
}

/** The certificate authorities of the cluster, and those that CNI plugins trust. */
export interface PluginTrust {
  readonly cluster: readonly TrustedAuthorities[];
  readonly plugins: readonly TrustedAuthorities[];
}

export interface TrustedAuthorities {
  readonly path: string;
  /** SHA-256. */
  readonly fingerprints: readonly string[];
}
