import type { Api } from "./api.ts";
import { type ClusterPlaces, clusterCredentials } from "./cluster-credentials.ts";

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
