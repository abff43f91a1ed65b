import { hostPath, resolveOnHost } from "../host/paths.ts";
import { splitNul } from "../host/proc.ts";
import { argumentsOf } from "../host/process-memory.ts";
import { fileText, type HostDir } from "../host/safe-fs.ts";
import { read, type Source, valueOr } from "../host/source.ts";
import { parseJson, stringIn } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { readAddressStores, readHostLocalDirs } from "./address-stores.ts";
import { cniConfChangedAt, readCniConf } from "./cni-conf.ts";
import { CORRUPT, isJsonObject, OK, readCniResults, readMultusCache, readScratchDir } from "./cni-files.ts";
import { readGuardQueue } from "./guard-queue.ts";
import { findMultusDaemons } from "./multus-daemon.ts";
import type { ProcessTable } from "./process-table.ts";
import { processProver } from "./trusted-process.ts";
import type { CniFacts, MultusConfig, ScratchFile } from "./types/cni.ts";
import { isFullId } from "./types/ids.ts";
import type { CniDirs } from "./types/runtime.ts";

interface CniPlaces {
  readonly root: string;
  readonly cacheDir: string;
  readonly multusDir: string | undefined;
  /** The runtime's network settings; its files are read while that call is in flight. */
  readonly network: Promise<{ readonly cniDirs: CniDirs; readonly isContainerd: boolean }>;
  /** Missing if the process table was not read. */
  readonly table?: Promise<Source<ProcessTable>>;
  readonly signal: AbortSignal;
}

/** All files of CNI on the node's disk. The configuration contains multus' cache directory. */
export async function readCni(places: CniPlaces): Promise<CniFacts> {
  const { root, cacheDir, signal } = places;
  async function readConf() {
    const { cniDirs, isContainerd } = await places.network;
    const onInvalid = isContainerd ? "stop" : "skip";
    const conf = await readCniConf({ root, dir: cniDirs.conf, binDirs: cniDirs.bin, onInvalid });
    if (conf.status !== "read" || conf.value.multus?.thick !== true) return conf;
    const table = places.table === undefined ? undefined : valueOr(await places.table, undefined);
    return read({ ...conf.value, multus: await withDaemonConfig(root, conf.value.multus, table) });
  }

  const reading = readConf();
  const multusDir = reading.then(
    (conf) => places.multusDir ?? valueOr(conf, undefined)?.multus?.cniDir ?? `${cacheDir}/multus`,
  );
  const changing = places.network.then(({ cniDirs }) => cniConfChangedAt(root, cniDirs.conf));
  const stores = places.network.then(({ cniDirs }) => readAddressStores(root, cniDirs.conf));
  const [confChangedAt, { plugins }, conf, results, multus, flannel, hostLocal] = await Promise.all([
    changing,
    stores,
    reading,
    readCniResults({ root, cacheDirs: [cacheDir, multusDir], signal }),
    multusDir.then((dir) => readMultusCache({ root, dir, signal })),
    readFlannelScratch({ root, dir: `${cacheDir}/flannel`, signal }),
    stores.then(({ dataDirs }) => readHostLocalDirs({ root, signal }, `${cacheDir}/networks`, dataDirs)),
  ]);
  const changed = confChangedAt === undefined ? {} : { confChangedAt };
  const guardQueue = readGuardQueue(root);
  return { ...changed, guardQueue, conf, results, multus, flannel, hostLocal, addressPlugins: plugins };
}

/** `<dir>/<sandbox id>`: the configuration that flannel wrote for its delegate (bridge) on ADD and needs on DEL. */
export async function readFlannelScratch(where: HostDir): Promise<Source<readonly ScratchFile[]>> {
  return readScratchDir(where, {
    parseName: (name) => (isFullId(name) ? { sandboxId: name } : undefined),
    judge: (text) => (isJsonObject(parseJson(text)) ? OK : CORRUPT),
  });
}

const CONFIG_FILE = "/etc/cni/net.d/multus.d/daemon-config.json";

/**
 * The cache directory of the thick multus daemon. Its own configuration overrides what the shim sends. In upstream's
 * manifest that file is a ConfigMap that only the daemon's container sees, so it is read through the daemon's process,
 * which is proven by the socket that it holds; if none runs, from the node's disk.
 */
export async function withDaemonConfig(
  root: string,
  multus: MultusConfig,
  table: ProcessTable | undefined,
): Promise<MultusConfig> {
  if (!multus.thick || multus.socket === undefined) return multus;
  const cniDir = stringIn(parseJson(await configText(root, multus.socket, table)), "cniDir");
  return cniDir?.startsWith("/") ? { ...multus, cniDir } : multus;
}

async function configText(root: string, socket: string, table: ProcessTable | undefined): Promise<string> {
  const candidates = (table?.processes ?? []).filter(({ comm }) => comm === "multus-daemon");
  const [daemon] = candidates.length === 0 ? [] : findMultusDaemons(root, candidates, processProver(root), [socket]);
  if (daemon !== undefined) {
    const dir = hostPath(root, `/proc/${daemon.pid}`);
    const cmdline = await argumentsOf(dir);
    const path = configPathIn(cmdline.kind === "content" ? splitNul(cmdline.text) : []);
    return fileText(resolveOnHost(`${dir}/root`, path, "follow"));
  }
  return provePath(root, CONFIG_FILE).kind === "trusted" ? fileText(resolveOnHost(root, CONFIG_FILE, "follow")) : "";
}

/** `-config FILE`, `-config=FILE`, and the same with two dashes. */
function configPathIn(words: readonly string[]): string {
  const at = words.findIndex((word) => /^--?config(?:=|$)/.test(word));
  const path = words[at]?.includes("=") ? words[at].slice(words[at].indexOf("=") + 1) : words[at + 1];
  return at >= 0 && path?.startsWith("/") ? path : CONFIG_FILE;
}
