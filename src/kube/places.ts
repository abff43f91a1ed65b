import { KUBELET_KUBECONFIGS } from "../distributions/index.ts";

/** Where a pod finds what it needs to talk to its cluster. */
export const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Whose credentials are to be used, found without loading what uses them. */
export type CredentialsPlace =
  | { readonly kind: "kubeconfig"; readonly path: string }
  | { readonly kind: "service-account"; readonly host: string; readonly port: string }
  | { readonly kind: "kubelet"; readonly path: string };

export interface Surroundings {
  /** `--kubeconfig`. */
  readonly kubeconfig: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isThere: (path: string) => boolean;
  /** As isThere, for paths of the node. */
  readonly isOnHost: (path: string) => boolean;
  readonly read: (path: string) => string;
}

/**
 * What was asked for counts, then what the pod was given, then what the node itself uses. The ServiceAccount `default` is
 * what a pod gets that was given none (`kubectl debug node`): there the node's own come first. The KUBECONFIG of the user who runs
 * unghost is left out on purpose: it may well be another cluster's, and that one would call every pod here gone.
 */
export function findCredentials(surroundings: Surroundings): CredentialsPlace | undefined {
  const { kubeconfig, env, isThere, isOnHost } = surroundings;
  if (kubeconfig !== undefined) return { kind: "kubeconfig", path: kubeconfig };
  const host = env["KUBERNETES_SERVICE_HOST"];
  const path = KUBELET_KUBECONFIGS.find(isOnHost);
  if (host && isThere(TOKEN) && (path === undefined || !isDefaultAccount(surroundings.read(TOKEN)))) {
    return { kind: "service-account", host, port: env["KUBERNETES_SERVICE_PORT"] || "443" };
  }
  return path === undefined ? undefined : { kind: "kubelet", path };
}

const TOKEN = `${SERVICE_ACCOUNT}/token`;

/** By the token's own claim. It is only a choice between our credentials: nothing is believed because of it. */
function isDefaultAccount(token: string): boolean {
  try {
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { sub?: unknown };
    return /^system:serviceaccount:[^:]+:default$/.test(String(claims.sub));
  } catch {
    return false;
  }
}
