import type { Api } from "../kube/api.ts";
import { KubeError } from "../kube/kube-error.ts";
import type { OpenCluster } from "../kube/open-cluster.ts";

/** Credentials are read each time, because tokens are replaced on disk while an agent runs. */
export async function withApi<T>(
  openCluster: OpenCluster,
  timeoutMs: number,
  work: (api: Api) => Promise<T>,
): Promise<T> {
  const api = await openCluster(timeoutMs);
  if (api === undefined) throw new KubeError("unusable", "there are no credentials for a cluster");
  try {
    return await work(api);
  } finally {
    api.close();
  }
}
