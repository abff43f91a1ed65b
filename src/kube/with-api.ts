import type { Api } from "./api.ts";
import type { OpenCluster } from "./cluster-credentials.ts";
import { KubeError } from "./errors.ts";

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
