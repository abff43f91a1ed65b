import type { Api } from "./api.ts";
import { type ClusterPlaces, clusterCredentials } from "./cluster-credentials.ts";

/** A conversation with the cluster that the node was looked up in; undefined where there are no credentials for any. */
export type OpenCluster = (timeoutMs: number) => Promise<Api | undefined>;

export function clusterOpener(places: ClusterPlaces): OpenCluster {
  return async (timeoutMs) => {
    const found = clusterCredentials(places);
    if (found === undefined) return undefined;
    const [{ openAccess }, { openApi }] = await Promise.all([import("./cluster.ts"), import("./api.ts")]);
    return openApi(await openAccess(found.credentials, found.readText), { timeoutMs });
  };
}
