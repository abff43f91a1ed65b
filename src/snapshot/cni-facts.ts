import { read, type Source, valueOr } from "../host/source.ts";
import { cniConfChangedAt, readCniConf } from "./cni-conf.ts";
import { readCniResults } from "./cni-results.ts";
import { readFlannelScratch } from "./flannel-scratch.ts";
import { readHostLocal } from "./host-local.ts";
import { readMultusCache } from "./multus-cache.ts";
import { withDaemonConfig } from "./multus-daemon-config.ts";
import type { ProcessTable } from "./process-table.ts";
import type { CniDirs, CniFacts } from "./types.ts";

export interface CniPlaces {
  readonly root: string;
  readonly cacheDir: string;
  readonly multusDir: string | undefined;
  /** What the runtime reports about its network; its files are read while that call is in flight. */
  readonly network: Promise<{ readonly cniDirs: CniDirs; readonly isContainerd: boolean }>;
  /** Missing where nothing is known to run. */
  readonly table?: Promise<Source<ProcessTable>>;
  readonly signal: AbortSignal;
}

/** All that CNI leaves on the node's disk. The configuration names where multus keeps its cache. */
export async function readCni(places: CniPlaces): Promise<CniFacts> {
  const { root, cacheDir, signal } = places;
  async function readConf() {
    const { cniDirs, isContainerd } = await places.network;
    const onInvalid = isContainerd ? "stop" : "skip";
    const conf = await readCniConf({ root, dir: cniDirs.conf, binDirs: cniDirs.bin, onInvalid });
    if (conf.status !== "read" || conf.value.multus?.thick !== true) return conf;
    const table = places.table === undefined ? undefined : valueOr(await places.table, undefined);
    return read({ ...conf.value, multus: withDaemonConfig(root, conf.value.multus, table) });
  }

  const reading = readConf();
  const multusDir = reading.then(
    (conf) => places.multusDir ?? valueOr(conf, undefined)?.multus?.cniDir ?? `${cacheDir}/multus`,
  );
  const changing = places.network.then(({ cniDirs }) => cniConfChangedAt(root, cniDirs.conf));
  const [confChangedAt, conf, results, multus, flannel, hostLocal] = await Promise.all([
    changing,
    reading,
    readCniResults({ root, cacheDirs: [cacheDir, multusDir], signal }),
    multusDir.then((dir) => readMultusCache({ root, dir, signal })),
    readFlannelScratch({ root, dir: `${cacheDir}/flannel`, signal }),
    readHostLocal({ root, dir: `${cacheDir}/networks`, signal }),
  ]);
  const changed = confChangedAt === undefined ? {} : { confChangedAt };
  return { ...changed, conf, results, multus, flannel, hostLocal };
}
