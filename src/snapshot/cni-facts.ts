import { readCniConf } from "./cni-conf.ts";
import { readCniResults } from "./cni-results.ts";
import { readFlannelScratch } from "./flannel-scratch.ts";
import { readHostLocal } from "./host-local.ts";
import { readMultusCache } from "./multus-cache.ts";
import { valueOr } from "./source.ts";
import type { CniDirs, CniFacts } from "./types.ts";

export interface CniPlaces {
  readonly root: string;
  readonly cacheDir: string;
  readonly multusDir: string | undefined;
  readonly cniDirs: CniDirs;
  readonly isContainerd: boolean;
  readonly signal: AbortSignal;
}

/** All that CNI leaves on the node's disk. The configuration is read first: it names where multus keeps its cache. */
export async function readCni(places: CniPlaces): Promise<CniFacts> {
  const { root, cacheDir, cniDirs, isContainerd, signal } = places;
  const onInvalid = isContainerd ? "stop" : "skip";
  const conf = await readCniConf({ root, dir: cniDirs.conf, binDirs: cniDirs.bin, onInvalid });
  const multusDir = places.multusDir ?? valueOr(conf, undefined)?.multus?.cniDir ?? `${cacheDir}/multus`;
  const [results, multus, flannel, hostLocal] = await Promise.all([
    readCniResults({ root, cacheDirs: [cacheDir, multusDir], signal }),
    readMultusCache({ root, dir: multusDir, signal }),
    readFlannelScratch({ root, dir: `${cacheDir}/flannel`, signal }),
    readHostLocal({ root, dir: `${cacheDir}/networks`, signal }),
  ]);
  return { conf, results, multus, flannel, hostLocal };
}
