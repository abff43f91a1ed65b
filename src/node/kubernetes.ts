import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Source } from "../host/source.ts";
import type { ClusterQuestion } from "../kube/cluster.ts";
import {
  type ClusterPlaces,
  clusterCredentials,
  credentialsForKubelet,
  nodeOfKubelet,
} from "../kube/cluster-credentials.ts";
import type { ClusterAnswer, ClusterFacts } from "../kube/cluster-facts.ts";
import type { ClusterMirror } from "../kube/mirror.ts";
import { DEFAULT_POD_LOGS, readKubeletDirs } from "./kubelet-dirs.ts";
import { findKubeletServer } from "./kubelet-process.ts";
import { isSameMachine } from "./machine.ts";
import { podUid } from "./types/ids.ts";
import type { KnownPod, Kubernetes } from "./types/snapshot.ts";

export interface KubernetesPlaces extends ClusterPlaces {
  readonly noKube: boolean;
  readonly kubeletRoot: string | Promise<string>;
  readonly node: string;
  readonly timeoutMs: number;
  /** Whether a sandbox is dead: a healthy node needs fewer requests. */
  readonly hasDeadSandboxes?: Promise<boolean>;
  /** The agent's watched copy, used instead of the API server. */
  readonly mirror?: ClusterMirror;
}

/** The pods of this node, from the API server, else from the kubelet and its directories. */
export async function readKubernetes(places: KubernetesPlaces): Promise<Kubernetes> {
  if (places.noKube) return { source: "none", unused: true };
  const asking = askApi(places);
  const kubeletRoots = [await places.kubeletRoot];
  const dirs = readKubeletDirs({ root: places.root, kubeletRoots, podLogs: DEFAULT_POD_LOGS });
  const [api, listed] = await Promise.all([asking, askKubeletInstead(asking, dirs, places)]);
  return api?.kind === "answered" ? fromApi(api.facts, dirs) : fromKubelet(dirs, listed, api?.reason);
}

/**
 * Used if the API server does not answer within half of the timeout. A kubelet that has not reached the API server
 * since its start has only static pods, so its answer is merged with its directories.
 */
async function askKubeletInstead(
  asking: Promise<ClusterAnswer | undefined>,
  dirs: Source<readonly KnownPod[]>,
  { root, env, timeoutMs }: KubernetesPlaces,
): Promise<ListedPods> {
  if (dirs.status !== "read") return { pods: [] };
  const half = Math.ceil(timeoutMs / 2);
  const early = await Promise.race([asking, sleep(half, undefined, { ref: false })]);
  return early?.kind === "answered" ? { pods: [] } : await readKubeletPods({ root, env, timeoutMs: half });
}

/** Returns undefined without credentials, which is normal. */
async function askApi(places: KubernetesPlaces): Promise<ClusterAnswer | undefined> {
  const { root, kubeconfig, env, node, timeoutMs, mirror } = places;
  const hasDeadSandboxes = soonKnown(places.hasDeadSandboxes ?? Promise.resolve(true), timeoutMs);
  const found = clusterCredentials({ root, kubeconfig, env });
  if (found === undefined) return undefined;
  const answer = await (mirror === undefined
    ? askOnce({ ...found, node, limits: { timeoutMs }, hasDeadSandboxes })
    : mirror.ask({ hasDeadSandboxes }));
  // Kubelet's own credentials belong to this node; others may lead to a cluster with another node of the same name.
  if (answer.kind === "failed" || found.credentials.kind === "kubelet") return answer;
  const proof = await proofOfAnotherMachine(root, answer.facts);
  if (proof === undefined) return answer;
  const reason = `the cluster's node "${answer.facts.nodeName}" is another machine (${proof}); check --kubeconfig and --node`;
  return { kind: "failed", reason };
}

/** Machines may be clones of one image, and nodes containers of one machine: then only kubelet's certificate distinguishes them. */
async function proofOfAnotherMachine(root: string, { nodeName, node }: ClusterFacts): Promise<string | undefined> {
  if (!isSameMachine(root, node)) return "its machine-id differs from the one here";
  if (nodeName === hostname().toLowerCase()) return undefined;
  const own = knownKubelets.get(root) ?? (await nodeOfKubelet(root));
  if (own === undefined) return undefined;
  // It does not change while kubelet runs, and an agent asks at every scan.
  knownKubelets.set(root, own);
  return own === nodeName ? undefined : `kubelet's certificate here is that of the node "${own}"`;
}

const knownKubelets = new Map<string, string>();

async function askOnce(question: ClusterQuestion): Promise<ClusterAnswer> {
  // Loaded only if there is a cluster.
  const { askCluster } = await import("../kube/cluster.ts");
  return await askCluster(question);
}

/** A slow runtime must not use up the API's time: then all requests are sent. */
function soonKnown(hasDeadSandboxes: Promise<boolean>, timeoutMs: number): Promise<boolean> {
  return Promise.race([hasDeadSandboxes, sleep(timeoutMs / 4, true, { ref: false })]);
}

function fromApi(facts: ClusterFacts, dirs: Source<readonly KnownPod[]>): Kubernetes {
  const pods = facts.pods.map(({ uid, ...pod }): KnownPod => ({ ...pod, uid: podUid(uid) }));
  return {
    source: "api",
    nodeName: facts.nodeName,
    pods: [...pods, ...staticPodsWithoutMirror(pods, dirs)],
    holds: {
      paused: facts.node?.paused ?? false,
      node: facts.node?.ignored ?? false,
      namespaces: facts.ignoredNamespaces,
      maintenance: facts.node?.maintenance,
    },
    unattached: facts.unattached,
    unattachedUnread: facts.unattachedUnread,
    events: facts.events,
    ...(dirs.status === "read" ? {} : { kubeletUnread: true }),
    ...(facts.gaps.length === 0 ? {} : { error: facts.gaps.join("; ") }),
  };
}

/** A static pod's uid is the hash of its manifest, not a UUID. */
const MANIFEST_HASH = /^[0-9a-f]{32}$/;

/** Kubelet runs static pods before, and without, reporting them to the API: for these its directories decide. */
function staticPodsWithoutMirror(known: readonly KnownPod[], dirs: Source<readonly KnownPod[]>): readonly KnownPod[] {
  if (dirs.status !== "read") return [];
  const mirrored = new Set(known.map(({ uid }) => uid));
  return dirs.value.filter(({ uid }) => MANIFEST_HASH.test(uid) && !mirrored.has(uid));
}

function fromKubelet(
  dirs: Source<readonly KnownPod[]>,
  listed: ListedPods,
  apiProblem: string | undefined,
): Kubernetes {
  const problems = [apiProblem, dirs.status === "failed" ? dirs.error.message : listed.problem];
  const known = problems.filter((problem) => problem !== undefined);
  const withError = known.length === 0 ? {} : { error: known.join("; ") };
  if (dirs.status !== "read") return { source: "none", ...withError };
  return { source: "kubelet", pods: joined(dirs.value, listed.pods), ...withError };
}

/** The kubelet's list has more about a pod than its directory. */
function joined(dirs: readonly KnownPod[], listed: readonly KnownPod[]): readonly KnownPod[] {
  const uids = new Set(listed.map(({ uid }) => uid));
  return [...listed, ...dirs.filter(({ uid }) => !uids.has(uid))];
}

interface ListedPods {
  readonly pods: readonly KnownPod[];
  /** Why the request was not sent as intended. */
  readonly problem?: string;
}

/** The pods that the running kubelet lists; none if it does not run, or refuses the request. */
async function readKubeletPods({
  root,
  env,
  timeoutMs,
}: Pick<ClusterPlaces, "root" | "env"> & { readonly timeoutMs: number }): Promise<ListedPods> {
  const server = await findKubeletServer(root, AbortSignal.timeout(timeoutMs));
  if (server === undefined) return { pods: [] };
  // Loaded only if there is a kubelet.
  const { askKubelet } = await import("../kube/kubelet-pods.ts");
  const credentials = credentialsForKubelet({ root, env }, server.kubeconfig);
  const { pods, ...rest } = await askKubelet({ ...server, timeoutMs, credentials });
  return { pods: pods.map(({ uid, ...pod }) => ({ ...pod, uid: podUid(uid) })), ...rest };
}
