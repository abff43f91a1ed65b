import { KUBELET_KUBECONFIGS } from "../host/distributions/index.ts";

/** The mount path of a pod's service account. */
export const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Which credentials to use; found without loading the client. */
export type CredentialsPlace =
  | { readonly kind: "kubeconfig"; readonly path: string }
  | { readonly kind: "service-account"; readonly host: string; readonly port: string }
  | { readonly kind: "kubelet"; readonly path: string };

export interface Surroundings {
  /** `--kubeconfig`. */
  readonly kubeconfig: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isThere: (path: string) => boolean;
  /** Like isThere, for paths of the node. */
  readonly isOnHost: (path: string) => boolean;
  readonly read: (path: string) => string;
}

/**
 * The requested kubeconfig comes first, then the pod's ServiceAccount, then the node's credentials. The ServiceAccount
 * `default` is assigned to pods without one (`kubectl debug node`): there the node's credentials come first. The
 * KUBECONFIG of the user who runs unghost is ignored on purpose: it may belong to another cluster, and then every pod
 * of this node would be reported as gone.
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

/** Reads the token's own claim without verification. It only decides between our credentials. */
function isDefaultAccount(token: string): boolean {
  try {
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { sub?: unknown };
    return /^system:serviceaccount:[^:]+:default$/.test(String(claims.sub));
  } catch {
    return false;
  }
}
