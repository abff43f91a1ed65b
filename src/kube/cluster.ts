import type { ApiAccess, ReadText } from "./access.ts";
import { type Api, type ApiLimits, CACHED, getObject, openApi } from "./api.ts";
import { readOnce } from "./attachments.ts";
import {
  type ApiNode,
  type ApiPod,
  type ClusterAnswer,
  type ClusterFacts,
  IGNORED_NAMESPACES,
  METADATA_LIST,
  PODS,
  type PodEvent,
  type Resource,
  toApiNode,
} from "./cluster-facts.ts";
import { KubeError, orKubeError, unlessError } from "./errors.ts";
import { readEvents } from "./events.ts";
import { type CredentialsPlace, kubeconfigAccess, SERVICE_ACCOUNT } from "./kubeconfig.ts";
import { listAll } from "./list.ts";
import { NodeSchema } from "./objects.ts";
import {
  type Following,
  MAX_LOOKUPS,
  mayBePlugins,
  readCsiDrivers,
  readUnattached,
  withPlugins,
} from "./unattached-volumes.ts";
import { noAnswers } from "./volume-lookups.ts";

/** Where to ask about which node. */
export interface NodeAccess {
  readonly credentials: CredentialsPlace;
  readonly readText: ReadText;
  /** The node's name, unless the credentials contain another one. */
  readonly node: string;
  readonly limits: ApiLimits;
}

export interface ClusterQuestion extends NodeAccess {
  /** Whether the runtime lists a dead sandbox; some requests are needed only then. */
  readonly hasDeadSandboxes?: Promise<boolean>;
}

/** Reads the cluster's state of this node. A failure is part of the result. */
export async function askCluster(question: ClusterQuestion): Promise<ClusterAnswer> {
  const { hasDeadSandboxes = Promise.resolve(true) } = question;
  return await orFailed(async () => {
    const { api, name, isKubelet } = await openNode(question);
    try {
      const standing = {
        pods: () => readAll(api, PODS, name),
        node: () => readNode(api, name),
        ignoredNamespaces: () => readAll(api, IGNORED_NAMESPACES, name),
        events: (pods: readonly ApiPod[]) => readEvents(api, pods),
        csiDrivers: () => readCsiDrivers(api, name),
      };
      const following = {
        most: () => MAX_LOOKUPS,
        volumes: new Map(),
        attachments: readOnce,
        answers: noAnswers(),
        readsClaims: true,
      };
      const facts = await readFacts(api, standing, { name, isKubelet, hasDeadSandboxes, following });
      return { kind: "answered", facts };
    } finally {
      api.close();
    }
  });
}

export async function orFailed(asking: () => Promise<ClusterAnswer>): Promise<ClusterAnswer> {
  try {
    return await asking();
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

export async function openNode({ credentials, readText, node, limits }: NodeAccess) {
  const access = await openAccess(credentials, readText);
  const own = access.certificate?.node;
  return {
    api: openApi(access, limits),
    /** The node's name in the cluster. Kubelet writes it in lower case, whatever the host name is. */
    name: own ?? node.toLowerCase(),
    /** The credentials are a kubelet's own. */
    isKubelet: own !== undefined,
  };
}

/** Reads from the server's cache, at least at the given version. */
export async function readAll<Parsed, Item>(
  api: Api,
  { path, query, metadataOnly, schema, reduce }: Resource<Parsed, Item>,
  node: string,
  notOlderThan?: string,
): Promise<readonly Item[]> {
  const accept = metadataOnly ? METADATA_LIST : undefined;
  const items = await listAll(api, { path, query: query(node), item: schema, accept, notOlderThan });
  return items.map((item) => reduce(item, node)).filter((item) => item !== undefined);
}

async function readNode(api: Api, name: string): Promise<ApiNode> {
  const path = `/api/v1/nodes/${encodeURIComponent(name)}`;
  return toApiNode(await getObject(api, path, NodeSchema, "node", CACHED));
}

/** The service account of a pod. The token is read each time because kubelet rotates it about every hour. */
export function inClusterAccess(host: string, port: string, readText: ReadText): ApiAccess {
  const text = (name: string): string => {
    const file = readText(`${SERVICE_ACCOUNT}/${name}`);
    if (file.kind === "text") return file.text.trim();
    const why = file.kind === "missing" ? "is missing" : file.reason;
    throw new KubeError("unusable", `the service account's ${SERVICE_ACCOUNT}/${name} ${why}`);
  };
  const address = host.includes(":") ? `[${host}]` : host;
  const url = `https://${address}:${port}`;
  if (!URL.canParse(url)) {
    throw new KubeError("unusable", `KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make no address: ${url}`);
  }
  return {
    server: new URL(url),
    tls: { ca: text("ca.crt"), insecure: false },
    token: text("token"),
    from: "the pod's service account",
  };
}

/** The cluster's state, read now or from a watch. */
export interface Standing {
  pods(): Promise<readonly ApiPod[]>;
  node(): Promise<ApiNode>;
  ignoredNamespaces(): Promise<readonly string[]>;
  events(pods: readonly ApiPod[]): Promise<readonly PodEvent[]>;
  /** Requested only if a pod may be a node plugin and there is no other proof. */
  csiDrivers(): Promise<readonly string[]>;
}

export interface FactsQuestion {
  /** The node's name in the cluster. */
  readonly name: string;
  /** The credentials are a kubelet's own. */
  readonly isKubelet: boolean;
  readonly hasDeadSandboxes: Promise<boolean>;
  readonly following: Following;
}

/** Reads the cluster's state of a node; sends only the requests that are needed now. */
export async function readFacts(api: Api, standing: Standing, question: FactsQuestion): Promise<ClusterFacts> {
  const { name, hasDeadSandboxes, following } = question;
  const [pods, node] = await Promise.all([standing.pods(), orKubeError(standing.node())]);
  // Kubelet credentials may read neither namespaces nor events.
  const someWait = !question.isKubelet && pods.some(isWaiting);
  const isWanted = !question.isKubelet && (someWait || (await hasDeadSandboxes));
  const [namespaces, events] = await Promise.all([
    isWanted ? orKubeError(standing.ignoredNamespaces()) : [],
    someWait ? orKubeError(standing.events(pods)) : undefined,
  ]);
  // One of several ways to identify a plugin: a failed request is not an error.
  const drivers =
    mayBePlugins(pods).length > 0 && (await hasDeadSandboxes) ? await orKubeError(standing.csiDrivers()) : [];
  const gaps: string[] = [];
  if (node instanceof KubeError) {
    // An empty list for a node that may not exist in the cluster would make every pod here count as gone.
    if (pods.length === 0) {
      throw new KubeError(
        node.kind,
        `the cluster lists no pod of a node "${name}" and cannot confirm that there is one: ${node.message}; pass the cluster's name of this machine with --node`,
      );
    }
    gaps.push(`whether unghost is paused or ignores this node is unknown: ${node.message}`);
  }
  if (namespaces instanceof KubeError) gaps.push(`which namespaces to ignore is not known: ${namespaces.message}`);
  const ofNode = { name, ...(node instanceof KubeError ? {} : { volumes: node.volumes ?? NO_VOLUMES }) };
  const unattached = question.isKubelet
    ? undefined
    : await orKubeError(readUnattached(api, ofNode, { pods, events: unlessError(events) ?? [] }, following));
  const unattachedUnread = question.isKubelet
    ? "kubelet's own credentials may not list VolumeAttachments"
    : unattached instanceof KubeError
      ? unattached.message
      : undefined;
  if (unattached instanceof KubeError)
    gaps.push(`which volumes wait to be attached is not known: ${unattached.message}`);
  return {
    nodeName: name,
    pods: drivers instanceof KubeError ? pods : withPlugins(pods, drivers),
    unattached: unlessError(unattached),
    unattachedUnread,
    node: unlessError(node),
    // Events are evidence only: no decision needs them.
    events: unlessError(events),
    ignoredNamespaces: unlessError(namespaces) ?? [],
    gaps,
  };
}

const NO_VOLUMES = { attached: [], inUse: [] };

/** A pod is not up as it should be: an event may explain it. */
function isWaiting({ phase, terminating, waiting, crash }: ApiPod): boolean {
  return phase === "Pending" || phase === "Unknown" || terminating || waiting !== undefined || crash?.down === true;
}
