import type { NodeVolumes } from "./attachment-reader.ts";
import type { PodEvent } from "./events.ts";
import type { PodState } from "./pod-state.ts";
import type { UnattachedVolume } from "./unattached-volumes.ts";

/** The cluster's state of one node and its pods. */
export interface ClusterFacts {
  /** The node's name in the cluster. */
  readonly nodeName: string;
  readonly pods: readonly ApiPod[];
  /** Missing if reading the node is forbidden. */
  readonly node?: ApiNode;
  readonly ignoredNamespaces: readonly string[];
  /** Missing if nothing was wrong, or if reading them is forbidden. */
  readonly events?: readonly PodEvent[];
  /** Volumes that this node waits for; missing if no pod waits, or if they could not be read. */
  readonly unattached?: readonly UnattachedVolume[];
  /** What could not be read, and what is unknown because of that. */
  readonly gaps: readonly string[];
}

export type ClusterAnswer =
  | { readonly kind: "answered"; readonly facts: ClusterFacts }
  | { readonly kind: "failed"; readonly reason: string };

export interface ApiPod extends PodState {
  readonly namespace: string;
  readonly name: string;
  /** The pod uid in its sandboxes. */
  readonly uid: string;
  readonly phase?: string;
  readonly terminating: boolean;
  readonly ignored: boolean;
  /** Claims that the pod mounts; missing if it mounts none. */
  readonly claims?: readonly string[];
}

export interface ApiNode {
  /** Missing if the node has none. */
  readonly volumes?: NodeVolumes;
  readonly machineId: string;
  readonly bootId: string;
  readonly ignored: boolean;
  readonly paused: boolean;
}
