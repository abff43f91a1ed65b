import type { Api } from "./api.ts";
import type { ApiNode, ApiPod, ClusterFacts, PodEvent } from "./cluster-facts.ts";
import { mayBePlugins, withPlugins } from "./csi-node.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import { type Following, readUnattached } from "./unattached-volumes.ts";

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
  const { name, isKubelet, hasDeadSandboxes, following } = question;
  const [pods, node] = await Promise.all([standing.pods(), orKubeError(standing.node())]);
  // Kubelet credentials may read neither namespaces nor events.
  const someWait = !isKubelet && pods.some(isWaiting);
  const isWanted = !isKubelet && (someWait || (await hasDeadSandboxes));
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
  const unattached = isKubelet ? undefined : await orKubeError(readUnattached(api, ofNode, pods, following));
  if (unattached instanceof KubeError)
    gaps.push(`which volumes wait to be attached is not known: ${unattached.message}`);
  return {
    nodeName: name,
    pods: drivers instanceof KubeError ? pods : withPlugins(pods, drivers),
    ...(unattached === undefined || unattached instanceof KubeError ? {} : { unattached }),
    ...(node instanceof KubeError ? {} : { node }),
    // Events are evidence only: no decision needs them.
    ...(events === undefined || events instanceof KubeError ? {} : { events }),
    ignoredNamespaces: namespaces instanceof KubeError ? [] : namespaces,
    gaps,
  };
}

const NO_VOLUMES = { attached: [], inUse: [] };

/** A pod is not up as it should be: an event may explain it. */
function isWaiting({ phase, terminating, waiting, crash }: ApiPod): boolean {
  return phase === "Pending" || phase === "Unknown" || terminating || waiting !== undefined || crash?.down === true;
}
