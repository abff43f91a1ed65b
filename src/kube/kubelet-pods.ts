import type { ApiAccess, ReadText } from "./access.ts";
import { openApi } from "./api.ts";
import { openAccess } from "./cluster.ts";
import type { ApiPod } from "./cluster-facts.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import { listAll } from "./list.ts";
import { PodSchema } from "./objects.ts";
import type { CredentialsPlace } from "./places.ts";
import { toApiPod } from "./resources.ts";

export interface KubeletQuestion {
  /** Ports of the node's own kubelet on loopback, in the order in which they are to be asked. */
  readonly urls: readonly URL[];
  /** Kubelet's own, or the service account's; whether it lets them in is its affair. */
  readonly credentials?: { readonly credentials: CredentialsPlace; readonly readText: ReadText };
  readonly timeoutMs: number;
}

/** The pods that the kubelet works on, by its own word; none where it does not say. */
export async function askKubelet({ urls, credentials, timeoutMs }: KubeletQuestion): Promise<readonly ApiPod[]> {
  for (const url of urls) {
    const isOpenToAll = credentials === undefined || url.protocol === "http:";
    const own = isOpenToAll ? undefined : await orKubeError(openAccess(credentials.credentials, credentials.readText));
    const pods = await orKubeError(podsFrom(url, own instanceof KubeError ? undefined : own, timeoutMs));
    if (!(pods instanceof KubeError)) return pods;
  }
  return [];
}

async function podsFrom(server: URL, access: ApiAccess | undefined, timeoutMs: number): Promise<readonly ApiPod[]> {
  const { cert, key } = access?.tls ?? {};
  const api = openApi(
    {
      server,
      // It signs its certificate itself, as a rule; that it is the kubelet is known by its process.
      tls: { insecure: true, ...(cert === undefined || key === undefined ? {} : { cert, key }) },
      ...(access?.token === undefined ? {} : { token: access.token }),
      from: access?.from ?? "nobody's credentials",
    },
    { timeoutMs },
  );
  try {
    return (await listAll(api, { path: "/pods", item: PodSchema })).map(toApiPod);
  } finally {
    api.close();
  }
}
