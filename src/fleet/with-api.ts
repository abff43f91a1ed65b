import type { Api } from "../kube/api.ts";
import type { OpenCluster } from "../kube/cluster-credentials.ts";
import { KubeError } from "../kube/kube-error.ts";

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
