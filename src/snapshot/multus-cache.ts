import { read, type Source } from "../host/source.ts";
import { parseJson, property } from "../host/text.ts";
import { isFullId } from "./ids.ts";
import { CORRUPT, isJsonObject, type Judgement, OK, readScratchDir, type ScratchDir } from "./scratch-files.ts";
import type { MultusCache } from "./types/cni.ts";

export const DEFAULT_MULTUS_DIR = "/var/lib/cni/multus";

/**
 * Not JSON, on purpose: since 4.0 multus treats an unparsable cache file as "cannot properly delete", calls no delegate
 * and reports success, so that the runtime can continue and release the name.
 */
export const MULTUS_MARKER = "unghost: the delegates of this sandbox are not to be called again\n";

/** `<cniDir>/<sandbox id>`: the delegates that multus called on ADD and must call again on DEL. */
export async function readMultusCache(where: ScratchDir): Promise<Source<MultusCache>> {
  const files = await readScratchDir(where, {
    parseName: (name) => (isFullId(name) ? { sandboxId: name } : undefined),
    judge: judgeMultusCache,
    // multus passes its own directory to libcni for its delegates' results.
    ignore: (entry) => entry.name === "results" && entry.kind === "directory",
  });
  return files.status === "read" ? read({ dir: where.dir, files: files.value }, files.oddities) : files;
}

/** A list of at least one delegate. multus reads the first element without a check and crashes on `[]` and `null`. */
export function judgeMultusCache(text: string): Judgement {
  if (text === MULTUS_MARKER) return { ...OK, isMarker: true };
  const delegates = parseJson(text);
  if (!Array.isArray(delegates) || delegates.length === 0 || !delegates.every(isJsonObject)) return CORRUPT;
  const strippedKeys = [...new Set(delegates.flatMap(strippedFrom))].sort();
  return strippedKeys.length === 0 ? OK : { ...OK, strippedKeys };
}

/**
 * multus 4.2.1 to 4.3.0 caches a file-based delegate twice: as read (`CNINetworkConfigList`, used by ADD) and reduced
 * to its known fields (`ConfList`, used by DEL).
 */
function strippedFrom(delegate: object): readonly string[] {
  const asRead = property(property(delegate, "CNINetworkConfigList"), "Plugins");
  const forDel = property(property(delegate, "ConfList"), "plugins");
  if (!Array.isArray(asRead) || !Array.isArray(forDel)) return [];
  return asRead.flatMap((plugin: unknown, index) => {
    const encoded = property(plugin, "Bytes");
    const config = typeof encoded === "string" ? parseJson(Buffer.from(encoded, "base64").toString("utf8")) : undefined;
    const reduced: unknown = forDel[index];
    if (!isJsonObject(config) || !isJsonObject(reduced)) return [];
    return Object.keys(config).filter((key) => !Object.hasOwn(reduced, key));
  });
}
