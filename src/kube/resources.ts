import type * as v from "valibot";
import type { ApiNode, ApiPod, NodeVolume } from "./cluster-facts.ts";
import { claimsOf, isIgnored, isPaused, NamespaceSchema, NodeSchema, PodSchema, sandboxUid } from "./objects.ts";
import { podState } from "./pod-state.ts";

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
    ...(claims.length === 0 ? {} : { claims }),
    ...podState(pod),
  };
}

export function toApiNode({ metadata, status }: v.InferOutput<typeof NodeSchema>): ApiNode {
  const attached = csiVolumes((status?.volumesAttached ?? []).map(({ name }) => name));
  const inUse = csiVolumes(status?.volumesInUse ?? []);
  return {
    ...(attached.length + inUse.length === 0 ? {} : { volumes: { attached, inUse } }),
    machineId: status?.nodeInfo?.machineID ?? "",
    bootId: status?.nodeInfo?.bootID ?? "",
    ignored: isIgnored(metadata),
    paused: isPaused(metadata),
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
