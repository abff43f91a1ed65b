import type { Holder, PodEvent, UnattachedVolume } from "../../kube/cluster-facts.ts";
import type { PodState } from "../../kube/pod-state.ts";
import type { PodUid } from "../ids.ts";

export type { Holder, PodEvent, UnattachedVolume };

/** The source of the pods, in order of precedence: the API server, kubelet and its directories, none. */
export type Kubernetes =
  | {
      readonly source: "api";
      readonly pods: readonly KnownPod[];
      readonly holds: Holds;
      /** The node's name in the cluster. */
      readonly nodeName?: string;
      /** Volumes that should be attached to this node and are not; missing if they were not requested. */
      readonly unattached?: readonly UnattachedVolume[];
      /** The last event of each kind about each pod of this node; missing if they were not requested. */
      readonly events?: readonly PodEvent[];
      /** Kubelet's directories could not be read: then a static pod without a mirror pod may still exist. */
      readonly kubeletUnread?: boolean;
      /** What else could not be read. */
      readonly error?: string;
    }
  /** `error`: why the API did not answer; missing if there is none. */
  | { readonly source: "kubelet"; readonly pods: readonly KnownPod[]; readonly error?: string }
  | { readonly source: "none"; readonly error?: string };

/** Labels and annotations in the cluster that make unghost skip objects. Pods have their own field. */
export interface Holds {
  /** `unghost.dev/paused` on the node: scan, and change nothing. */
  readonly paused: boolean;
  /** `unghost.dev/ignore` on the node. */
  readonly node: boolean;
  /** Namespaces with `unghost.dev/ignore`. */
  readonly namespaces: readonly string[];
}

export interface KnownPod extends PodState {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** The uid in its sandboxes: for a static pod the hash of its manifest, not the mirror pod's uid. */
  readonly uid: PodUid;
  readonly phase?: string;
  /** It has a deletion timestamp. */
  readonly terminating?: boolean;
  /** `unghost.dev/ignore` on the pod itself. */
  readonly ignored?: boolean;
  /** PersistentVolumeClaims that it mounts, if the API was read. */
  readonly claims?: readonly string[];
}
