import type { ApiAccess, ApiTls } from "./access.ts";
import { openApi } from "./api.ts";
import { openAccess } from "./cluster.ts";
import type { ClusterCredentials } from "./cluster-credentials.ts";
import { type ApiPod, toApiPod } from "./cluster-facts.ts";
import { KubeError, orKubeError } from "./errors.ts";
import { listAll } from "./list.ts";
import { PodSchema } from "./objects.ts";

export interface KubeletQuestion {
  /** Ports of the node's own kubelet on loopback, in the order of the attempts. */
  readonly urls: readonly URL[];
  /** Kubelet's own credentials, or the service account's; kubelet decides whether it accepts them. */
  readonly credentials?: ClusterCredentials;
  /** Kubelet's serving certificates on the node's disk. */
  readonly serving?: ServingCertificate;
  readonly timeoutMs: number;
}

export interface ServingCertificate {
  /** The certificate with its chain, if the file contains one. */
  readonly pem: string;
  /** A name in the certificate, because none is issued for 127.0.0.1. */
  readonly name?: string;
}

export interface KubeletAnswer {
  readonly pods: readonly ApiPod[];
  /** Why the available token was not sent. */
  readonly problem?: string;
}

/** The pods that the kubelet reports; none without an answer. */
export async function askKubelet({ urls, credentials, serving, timeoutMs }: KubeletQuestion): Promise<KubeletAnswer> {
  let problem: string | undefined;
  for (const url of urls) {
    const isOpenToAll = credentials === undefined || url.protocol === "http:";
    const opened = isOpenToAll
      ? undefined
      : await orKubeError(openAccess(credentials.credentials, credentials.readText));
    const own = opened instanceof KubeError ? undefined : opened;
    if (own?.token !== undefined) {
      const pods = await askVerified(url, own, serving, timeoutMs);
      if (!(pods instanceof KubeError)) return { pods };
      problem = tokenWithheld(url, own, pods);
    }
    // The certificate is usually self-signed; the kubelet is identified by its process. No secret is sent.
    const pods = await orKubeError(podsFrom(url, { ...clientCertificate(own), insecure: true }, own, timeoutMs));
    if (!(pods instanceof KubeError)) return { pods };
  }
  return { pods: [], problem };
}

async function askVerified(
  url: URL,
  own: ApiAccess,
  serving: ServingCertificate | undefined,
  timeoutMs: number,
): Promise<readonly ApiPod[] | KubeError> {
  if (serving === undefined) {
    return new KubeError("unusable", "its serving certificate was not found on the node's disk");
  }
  const known = [serving.pem, own.tls.ca].filter((pem) => pem !== undefined);
  const tls = { ...clientCertificate(own), insecure: false, ca: known.join("\n"), serverName: serving.name };
  return await orKubeError(podsFrom(url, tls, own, timeoutMs));
}

/** Reported only if the certificate, or its absence, prevented sending the token. */
function tokenWithheld({ origin }: URL, { from }: ApiAccess, { kind, message }: KubeError): string | undefined {
  if (kind !== "unusable" && kind !== "unreachable") return undefined;
  return `the kubelet at ${origin} was not sent the token of ${from}, because its certificate could not be verified (${message}); keep its serving certificate in the kubelet's cert-dir (/var/lib/kubelet/pki/kubelet.crt), owned by root, or have it signed by the cluster's CA (serverTLSBootstrap)`;
}

function clientCertificate(own: ApiAccess | undefined): Pick<ApiTls, "cert" | "key"> {
  return { cert: own?.tls.cert, key: own?.tls.key };
}

async function podsFrom(
  server: URL,
  tls: ApiTls,
  own: ApiAccess | undefined,
  timeoutMs: number,
): Promise<readonly ApiPod[]> {
  // The connection does not send a token that is not safe on it.
  const api = openApi({ server, tls, from: own?.from ?? "no credentials", token: own?.token }, { timeoutMs });
  try {
    return (await listAll(api, { path: "/pods", item: PodSchema })).map(toApiPod);
  } finally {
    api.close();
  }
}
