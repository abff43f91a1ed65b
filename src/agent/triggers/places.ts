import { posix } from "node:path";
import { distributionOf } from "../../runtime/distributions.ts";
import { resolveOnHost } from "../../snapshot/host-paths.ts";
import { valueOr } from "../../snapshot/source.ts";
import type { Snapshot } from "../../snapshot/types.ts";

/** What there is to be watched on the node, as the last look saw it. */
export interface WatchedPlaces {
  readonly directories: readonly string[];
  readonly logFiles: readonly string[];
}

export function placesOf(
  { cni, runtime }: Pick<Snapshot, "cni" | "runtime">,
  { hostRoot, cniCacheDir }: { readonly hostRoot: string; readonly cniCacheDir: string },
): WatchedPlaces {
  const onHost = (path: string): string => resolveOnHost(hostRoot, path, "follow");
  const multus = valueOr(cni.multus, undefined)?.dir;
  const networks = valueOr(cni.hostLocal, []).map(({ dir }) => dir);
  const directories = ["results", "flannel", "networks"].map((name) => posix.join(cniCacheDir, name));
  return {
    directories: [...directories, ...networks, ...(multus === undefined ? [] : [multus])].map(onHost),
    logFiles: distributionOf(runtime.endpoint).logFiles.map(onHost),
  };
}
