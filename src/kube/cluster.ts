import * as v from "valibot";
import type { ApiAccess, ReadText } from "./access.ts";
import { type Api, type ApiLimits, openApi } from "./api.ts";
import { type PodEvent, readEvents } from "./events.ts";
import { inClusterAccess } from "./in-cluster.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import { kubeconfigAccess } from "./kubeconfig.ts";
import { listAll } from "./list.ts";
import { claimsOf, isIgnored, isPaused, NamespaceSchema, NodeSchema, PodSchema, sandboxUid } from "./objects.ts";
import type { CredentialsPlace } from "./places.ts";
import { type PodState, podState } from "./pod-state.ts";
import { readUnattached, type UnattachedVolume } from "./unattached-volumes.ts";

/** What the cluster says about one node and its pods. */
export interface ClusterFacts {
  /** What the cluster calls the node. */
  readonly nodeName: string;
  readonly pods: readonly ApiPod[];
  /** Missing where the node may not be read. */
  readonly node?: ApiNode;
  readonly ignoredNamespaces: readonly string[];
  /** Missing where nothing was wrong, or they may not be read. */
  readonly events?: readonly PodEvent[];
  /** Volumes that this node waits for; missing where nobody waits, or they could not be asked for. */
  readonly unattached?: readonly UnattachedVolume[];
  /** What could not be asked, and what is not known because of that. */
  readonly gaps: readonly string[];
}

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
  readonly machineId: string;
  readonly bootId: string;
  readonly ignored: boolean;
  readonly paused: boolean;
}

export interface ClusterQuestion {
  readonly credentials: CredentialsPlace;
  readonly readText: ReadText;
  /** The node's name, unless the credentials know better. */
  readonly node: string;
  readonly limits: ApiLimits;
  /** Whether the runtime shows anything dead; what matters only then is not asked for otherwise. */
  readonly isSick?: Promise<boolean>;
}

export type ClusterAnswer =
  | { readonly kind: "answered"; readonly facts: ClusterFacts }
  | { readonly kind: "failed"; readonly reason: string };

/** Asks the cluster about this node. That it cannot be asked is an answer, too. */
export async function askCluster(question: ClusterQuestion): Promise<ClusterAnswer> {
  const { credentials, readText, node, limits, isSick = Promise.resolve(true) } = question;
  try {
    const access = await openAccess(credentials, readText);
    const api = openApi(access, limits);
    try {
      return { kind: "answered", facts: await readFacts(api, access, nodeName(access, node), isSick) };
    } finally {
      api.close();
    }
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    return { kind: "failed", reason: error.message };
  }
}

export async function openAccess(credentials: CredentialsPlace, readText: ReadText): Promise<ApiAccess> {
  return credentials.kind === "service-account"
    ? inClusterAccess(credentials.host, credentials.port, readText)
    : await kubeconfigAccess(credentials.path, readText);
}

/** Kubelet writes its node's name in lower case, whatever the machine calls itself. */
function nodeName({ certificate }: ApiAccess, node: string): string {
  return certificate?.node ?? node.toLowerCase();
}

async function readFacts(api: Api, access: ApiAccess, name: string, isSick: Promise<boolean>): Promise<ClusterFacts> {
  const [pods, node] = await Promise.all([readPods(api, name), orKubeError(readNode(api, name))]);
  // No kubelet may read namespaces or events: that need not be tried.
  const isKubelet = access.certificate?.node !== undefined;
  const someWait = !isKubelet && pods.some(isWaiting);
  const isWanted = !isKubelet && (someWait || (await isSick));
  const [namespaces, events] = await Promise.all([
    isWanted ? orKubeError(readIgnoredNamespaces(api)) : [],
    someWait ? orKubeError(readEvents(api, pods)) : undefined,
  ]);
  const gaps: string[] = [];
  if (node instanceof KubeError) {
    // An empty list of a node that the cluster may not even know would call every pod here gone.
    if (pods.length === 0) {
      throw new KubeError(
        node.kind,
        `the cluster lists no pod of a node "${name}" and cannot confirm that there is one: ${node.message}; say with --node what the cluster calls this machine`,
      );
    }
    gaps.push(`whether unghost is paused or told to ignore this node is not known: ${node.message}`);
  }
  if (namespaces instanceof KubeError) gaps.push(`which namespaces to ignore is not known: ${namespaces.message}`);
  const unattached = isKubelet ? undefined : await orKubeError(readUnattached(api, name, pods));
  if (unattached instanceof KubeError)
    gaps.push(`which volumes wait to be attached is not known: ${unattached.message}`);
  return {
    nodeName: name,
    pods,
    ...(unattached === undefined || unattached instanceof KubeError ? {} : { unattached }),
    ...(node instanceof KubeError ? {} : { node }),
    // Evidence alone: what may be done does not change without it.
    ...(events === undefined || events instanceof KubeError ? {} : { events }),
    ignoredNamespaces: namespaces instanceof KubeError ? [] : namespaces,
    gaps,
  };
}

/** Something that should be up is not: then the cluster may have said why. */
function isWaiting({ phase, terminating, waiting }: ApiPod): boolean {
  return phase === "Pending" || phase === "Unknown" || terminating || waiting !== undefined;
}

async function readPods(api: Api, node: string): Promise<readonly ApiPod[]> {
  const query = { fieldSelector: `spec.nodeName=${node}` };
  const pods = await listAll(api, { path: "/api/v1/pods", query, item: PodSchema });
  return pods
    .filter(({ spec }) => spec?.nodeName === node)
    .map((pod) => {
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
    });
}

async function readNode(api: Api, name: string): Promise<ApiNode> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  const result = v.safeParse(NodeSchema, await api.get(`${path}?resourceVersion=0`));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no node`);
  const { metadata, status } = result.output;
  return {
    machineId: status?.nodeInfo?.machineID ?? "",
    bootId: status?.nodeInfo?.bootID ?? "",
    ignored: isIgnored(metadata),
    paused: isPaused(metadata),
  };
}

/** Names and marks alone, which the server strips the rest off for. */
const METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

async function readIgnoredNamespaces(api: Api): Promise<readonly string[]> {
  const path = "/api/v1/namespaces";
  const namespaces = await listAll(api, { path, accept: METADATA_ONLY, item: NamespaceSchema });
  return namespaces.filter(({ metadata }) => isIgnored(metadata)).map(({ metadata }) => metadata.name);
}
