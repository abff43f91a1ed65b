import { KUBELET_KUBECONFIGS } from "../host/distributions.ts";
import { existsSync } from "../host/guarded-fs.ts";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { provePath } from "../host/trusted-path.ts";
import type { FileText, ReadText } from "./access.ts";
import type { Api } from "./api.ts";
import { KubeError, orKubeError, unlessError } from "./errors.ts";
import { type CredentialsPlace, findCredentials } from "./kubeconfig.ts";

export interface ClusterPlaces {
  readonly root: string;
  readonly kubeconfig: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ClusterCredentials {
  readonly credentials: CredentialsPlace;
  readonly readText: ReadText;
}

/** Returns undefined without credentials, which is a normal case. */
export function clusterCredentials({ root, kubeconfig, env }: ClusterPlaces): ClusterCredentials | undefined {
  const isOnHost = (path: string): boolean => existsSync(resolveOnHost(root, path, "follow"));
  const readOwn = (path: string): string => {
    const file = readTextBelow("/")(path);
    return file.kind === "text" ? file.text : "";
  };
  const credentials = findCredentials({ kubeconfig, env, isThere: existsSync, isOnHost, read: readOwn });
  if (credentials === undefined) return undefined;
  return { credentials, readText: credentials.kind === "kubelet" ? readProvenBelow(root) : readTextBelow("/") };
}

/**
 * Credentials that a kubelet may accept: its own, from its flags or the path of its distribution, else our service
 * account.
 */
export function credentialsForKubelet(
  { root, env }: Pick<ClusterPlaces, "root" | "env">,
  own: string | undefined,
): ClusterCredentials | undefined {
  const places = [...(own === undefined ? [] : [own]), ...KUBELET_KUBECONFIGS];
  const path = places.find((place) => existsSync(resolveOnHost(root, place, "follow")));
  if (path !== undefined) return { credentials: { kind: "kubelet", path }, readText: readProvenBelow(root) };
  const found = clusterCredentials({ root, env, kubeconfig: undefined });
  return found?.credentials.kind === "service-account" ? found : undefined;
}

/** The node's name in the certificate of this machine's kubelet; undefined if that is not readable, or is no proof. */
export async function nodeOfKubelet(root: string): Promise<string | undefined> {
  const path = KUBELET_KUBECONFIGS.find((place) => existsSync(resolveOnHost(root, place, "follow")));
  if (path === undefined) return undefined;
  const { kubeconfigAccess } = await import("./kubeconfig.ts");
  const access = await orKubeError(kubeconfigAccess(path, readProvenBelow(root)));
  return unlessError(access)?.certificate?.node;
}

/**
 * The operator did not choose the kubelet's files: a file that users other than root can write, or that such a file
 * names, is not read.
 */
function readProvenBelow(root: string): ReadText {
  const readText = readTextBelow(root);
  return (path) => {
    const trust = provePath(root, path);
    if (trust.kind !== "refused") return readText(path);
    return { kind: "refused", reason: `is not used: ${trust.detail} (${trust.next})` };
  };
}

function readTextBelow(root: string): ReadText {
  return (path): FileText => {
    const file = readRegularFile(resolveOnHost(root, path, "follow"));
    if (file.kind === "content") return { kind: "text", text: file.text };
    return file.kind === "gone" ? { kind: "missing" } : { kind: "refused", reason: file.reason };
  };
}

/** A client of the node's cluster; undefined without credentials. */
export type OpenCluster = (timeoutMs: number) => Promise<Api | undefined>;

export function clusterOpener(places: ClusterPlaces): OpenCluster {
  return async (timeoutMs) => {
    const found = clusterCredentials(places);
    if (found === undefined) return undefined;
    const [{ openAccess }, { openApi }] = await Promise.all([import("./cluster.ts"), import("./api.ts")]);
    return openApi(await openAccess(found.credentials, found.readText), { timeoutMs });
  };
}

/**
 * A piece of work with the cluster's API. Credentials are read each time, because tokens are replaced on disk while an
 * agent runs. `openCluster` is missing if the cluster is not to be used.
 */
export async function withApi<T>(
  openCluster: OpenCluster | undefined,
  timeoutMs: number,
  work: (api: Api) => Promise<T>,
): Promise<T> {
  const api = await openCluster?.(timeoutMs);
  if (api === undefined) throw new KubeError("no-credentials", "there are no credentials for a cluster");
  try {
    return await work(api);
  } finally {
    api.close();
  }
}
