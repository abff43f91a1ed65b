import type * as v from "valibot";
import {
  claimsOf,
  isIgnored,
  isPaused,
  maintenanceOf,
  NamespaceSchema,
  NodeSchema,
  PodSchema,
  type PodState,
  podState,
  sandboxUid,
} from "./objects.ts";

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
  /** Why volumes that wait could not be read. */
  readonly unattachedUnread?: string;
  /** What could not be read, and what is unknown because of that. */
  readonly gaps: readonly string[];
}

export type ClusterAnswer =
  | { readonly kind: "answered"; readonly facts: ClusterFacts }
  | { readonly kind: "failed"; readonly reason: string };

export interface ApiPod extends PodState {
  readonly namespace: string;
  readonly name: string;
  /** The uid in its sandboxes: for a static pod the hash of its manifest, not the mirror pod's uid. */
  readonly uid: string;
  readonly phase?: string;
  /** It has a deletion timestamp. */
  readonly terminating: boolean;
  /** `unghost.dev/ignore` on the pod itself. */
  readonly ignored: boolean;
  /** Claims that the pod mounts; missing if it mounts none. */
  readonly claims?: readonly string[];
  /** When a pod with claims that has not started yet was created. */
  readonly waitingSince?: Date;
}

export interface ApiNode {
  /** Missing if the node has none. */
  readonly volumes?: NodeVolumes;
  readonly machineId: string;
  readonly bootId: string;
  readonly ignored: boolean;
  readonly paused: boolean;
  /** By what it is in maintenance; missing if it is not. */
  readonly maintenance?: string;
}

/** The last event of one kind about one pod. */
export interface PodEvent {
  readonly namespace: string;
  readonly pod: string;
  readonly reason: string;
  readonly message: string;
  /** The count of the event. */
  readonly count: number;
  readonly uid?: string;
  /** When it was last reported. */
  readonly at?: Date;
}

/** The CSI volumes of a Node's status. */
export interface NodeVolumes {
  /** Set by the attach/detach controller, which removes a volume before it requests the detach. */
  readonly attached: readonly NodeVolume[];
  /** Set by kubelet, which adds a volume as soon as a pod needs it. */
  readonly inUse: readonly NodeVolume[];
}

export interface NodeVolume {
  readonly driver: string;
  readonly handle: string;
}

/** The cluster's desired attachment of a volume to a node, with its status. */
export interface ApiAttachment {
  readonly name: string;
  readonly attacher: string;
  readonly node: string;
  /** Missing for an inline volume of a pod. */
  readonly volume?: string;
  readonly attached: boolean;
  readonly createdAt: Date;
  /** The deletion timestamp: it is being deleted. */
  readonly deletedAt?: Date;
  readonly finalizers: readonly string[];
  readonly error?: string;
}

/**
 * A volume that is not attached to this node although it should be, not detached although it should be, or attached to
 * two nodes, with what depends on it and who may hold it.
 */
export interface UnattachedVolume extends ApiAttachment {
  readonly claim?: ClaimName;
  /** This node's kubelet reports it in use. */
  readonly inUse: boolean;
  /** Other nodes to which the same volume is attached, unless it is made for several. */
  readonly holders: readonly Holder[];
  /** The lease that a running external-attacher renews every few seconds. */
  readonly lease?: Lease;
  /** The lease of kube-controller-manager, whose attach/detach controller requests and deletes attachments. */
  readonly controllerLease?: Lease;
  /** A pod of this node waits for it, and this attachment is that of another node: there is none for this node. */
  readonly awaited?: true;
  /** There is none, because none was requested. The name is the one that it would have. */
  readonly missing?: true;
  /** What could not be read, and why. */
  readonly unknown: readonly string[];
}

export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/** Another node that has the volume. */
export interface Holder {
  readonly node: string;
  /** Its attachment is being deleted. */
  readonly deleting: boolean;
  /** The pods there that use the volume's claim; missing if they were not read. */
  readonly pods?: readonly string[];
  /** Missing if the node could not be read. */
  readonly state?:
    | { readonly kind: "gone" }
    | { readonly kind: "there"; readonly ready: boolean; readonly cordoned: boolean; readonly inUse: boolean };
}

export interface Lease {
  readonly holder: string;
  readonly durationSeconds: number;
  readonly renewedAt: Date;
}

/** A kind of object that unghost reads, listed once or listed and then watched. */
export interface Resource<Parsed, Item> {
  readonly path: string;
  readonly query: (node: string) => Readonly<Record<string, string>>;
  /** Only metadata is requested, and the server strips the rest. */
  readonly metadataOnly: boolean;
  readonly schema: v.GenericSchema<unknown, Parsed>;
  /** The key of an object during its lifetime. */
  readonly keyOf: (object: Parsed) => string;
  /** Returns undefined for objects that are not needed, whatever the server selected. */
  readonly reduce: (object: Parsed, node: string) => Item | undefined;
}

export const PODS: Resource<v.InferOutput<typeof PodSchema>, ApiPod> = {
  path: "/api/v1/pods",
  query: (node) => ({ fieldSelector: `spec.nodeName=${node}` }),
  metadataOnly: false,
  schema: PodSchema,
  keyOf: ({ metadata }) => `${metadata.namespace}/${metadata.name}`,
  reduce: (pod, node) => (pod.spec?.nodeName === node ? toApiPod(pod) : undefined),
};

export const NODES: Resource<v.InferOutput<typeof NodeSchema>, ApiNode> = {
  path: "/api/v1/nodes",
  query: (node) => ({ fieldSelector: `metadata.name=${node}` }),
  metadataOnly: false,
  schema: NodeSchema,
  keyOf: ({ metadata }) => metadata.name,
  reduce: (node, name) => (node.metadata.name === name ? toApiNode(node) : undefined),
};

/** The names of namespaces with unghost.dev/ignore. */
export const IGNORED_NAMESPACES: Resource<v.InferOutput<typeof NamespaceSchema>, string> = {
  path: "/api/v1/namespaces",
  query: () => ({}),
  metadataOnly: true,
  schema: NamespaceSchema,
  keyOf: ({ metadata }) => metadata.name,
  reduce: ({ metadata }) => (isIgnored(metadata) ? metadata.name : undefined),
};

export function toApiPod(pod: v.InferOutput<typeof PodSchema>): ApiPod {
  const { metadata, status } = pod;
  const claims = claimsOf(pod);
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: sandboxUid(pod),
    ...(status?.phase ? { phase: status.phase } : {}),
    terminating: Boolean(metadata.deletionTimestamp),
    ignored: isIgnored(metadata),
    ...(claims.length === 0 ? {} : { claims, waitingSince: waitingSince(pod) }),
    ...podState(pod),
  };
}

function waitingSince({ metadata, status }: v.InferOutput<typeof PodSchema>): Date | undefined {
  const { creationTimestamp } = metadata;
  return status?.phase === "Pending" && creationTimestamp ? new Date(creationTimestamp) : undefined;
}

export function toApiNode(node: v.InferOutput<typeof NodeSchema>): ApiNode {
  const { metadata, status } = node;
  const attached = csiVolumes((status?.volumesAttached ?? []).map(({ name }) => name));
  const inUse = csiVolumes(status?.volumesInUse ?? []);
  return {
    ...(attached.length + inUse.length === 0 ? {} : { volumes: { attached, inUse } }),
    machineId: status?.nodeInfo?.machineID ?? "",
    bootId: status?.nodeInfo?.bootID ?? "",
    ignored: isIgnored(metadata),
    paused: isPaused(metadata),
    maintenance: maintenanceOf(node),
  };
}

/** `kubernetes.io/csi/<driver>^<handle>`; a driver's name contains no "^", a handle may. */
const CSI_VOLUME = /^kubernetes\.io\/csi\/([^^]+)\^(.+)$/s;

export function csiVolumes(names: readonly string[]): readonly NodeVolume[] {
  return names.flatMap((name) => {
    const [, driver, handle] = CSI_VOLUME.exec(name) ?? [];
    return driver === undefined || handle === undefined ? [] : [{ driver, handle }];
  });
}

/** Requests metadata only: a server that supports it strips the rest, any other returns complete objects. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
export const METADATA_WATCH = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
