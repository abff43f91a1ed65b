import type { OpenCluster } from "../../kube/open-cluster.ts";
import type { ContainerdClient } from "../../runtime/containerd.ts";
import type { CriClient } from "../../runtime/cri.ts";
import type { CniConfig } from "../../snapshot/types.ts";
import type { FreshFacts } from "./fresh-facts.ts";
import type { HealContext } from "./heal-context.ts";
import type { Interruption } from "./interruption.ts";
import type { RemovalVerifier } from "./removal-verifier.ts";
import type { Turn } from "./turns.ts";

/** What the steps of a treatment work with. */
export interface NodeTools extends HealContext {
  readonly cri: CriClient;
  /** undefined where the runtime is not containerd. */
  readonly containerd: ContainerdClient | undefined;
  readonly facts: FreshFacts;
  readonly departed: RemovalVerifier;
  /** Missing where nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
  readonly conf: CniConfig | undefined;
  readonly binDirs: readonly string[];
  /** Below which libcni keeps its results: the runtime's, and multus' own. */
  readonly cniCacheDirs: readonly string[];
  /** Of containers that have ended, as the first look found them. */
  readonly logPaths: ReadonlyMap<string, string>;
  readonly waits: Waits;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  readonly interruption: Interruption;
  readonly turn: Turn;
}

export interface Waits {
  /** Looking: must answer at once. */
  readonly lookMs: number;
  /** Stopping and removing: kubelet waits 2 min, and a DEL that is cut short is worse than a slow one. */
  readonly actMs: number;
  /** How long kubelet is given to finish by itself once the obstacle is gone; its own retry comes every 13 s or so. */
  readonly kubeletMs: number;
  /** How long a CSI driver's socket is given to come back: kubelet makes the sandbox, then starts the plugin. */
  readonly socketMs: number;
  /** Between asking a process to end and ending it. */
  readonly termMs: number;
  /** For the runtime to roll a creation back once its plugin has ended. */
  readonly rollbackMs: number;
  /** For a plugin at work to end by itself, before what it may hold is looked at. */
  readonly pluginMs: number;
}

export const DEFAULT_WAITS: Waits = {
  lookMs: 10_000,
  actMs: 130_000,
  kubeletMs: 45_000,
  socketMs: 60_000,
  termMs: 3000,
  rollbackMs: 5000,
  pluginMs: 5000,
};
