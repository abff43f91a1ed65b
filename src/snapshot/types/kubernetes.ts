import type { UnattachedVolume as ApiUnattached, PodEvent } from "../../kube/cluster-facts.ts";
import type { PodUid } from "../ids.ts";

export type { PodEvent };

/** A VolumeAttachment of this node that is not attached, or is and waits to be detached. */
export type UnattachedVolume = Omit<ApiUnattached, "resourceVersion">;

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
