import type { NodeVolumes } from "./attachment-reader.ts";
import type { PodEvent } from "./events.ts";
import type { PodState } from "./pod-state.ts";
import type { UnattachedVolume } from "./unattached-volumes.ts";

/** The cluster's state of one node and its pods. */
export interface ClusterFacts {
  /** What the cluster calls the node. */
  readonly nodeName: string;
  readonly pods: readonly ApiPod[];
  /** Missing where the node may not be read. */
  readonly node?: ApiNode;
  readonly ignoredNamespaces: readonly string[];
  /** Missing where nothing was wrong, or they may not be read. */
  readonly events?: readonly PodEvent[];
  /** Volumes that this node waits for; missing where no pod waits, or they could not be read. */
  readonly unattached?: readonly UnattachedVolume[];
  /** What could not be asked, and what is not known because of that. */
  readonly gaps: readonly string[];
}

export type ClusterAnswer =
  | { readonly kind: "answered"; readonly facts: ClusterFacts }
  | { readonly kind: "failed"; readonly reason: string };

export interface ApiPod extends PodState {
  readonly namespace: string;
  readonly name: string;
  /** The uid that its sandboxes carry. */
  readonly uid: string;
  readonly phase?: string;
  readonly terminating: boolean;
  readonly ignored: boolean;
  /** Claims that it mounts; missing where it mounts none. */
  readonly claims?: readonly string[];
}

export interface ApiNode {
  /** Missing where it has none. */
  readonly volumes?: NodeVolumes;
  readonly machineId: string;
  readonly bootId: string;
  readonly ignored: boolean;
  readonly paused: boolean;
}
