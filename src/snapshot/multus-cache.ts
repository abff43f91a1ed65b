import { isFullId } from "./ids.ts";
import { parseJson } from "./json.ts";
import { CORRUPT, isJsonObject, type Judgement, OK, readScratchDir, type ScratchDir } from "./scratch-files.ts";
import { read, type Source } from "./source.ts";
import type { MultusCache } from "./types.ts";

export const DEFAULT_MULTUS_DIR = "/var/lib/cni/multus";

/** `<cniDir>/<sandbox id>`: the delegates that multus called on ADD and must call again on DEL. */
export async function readMultusCache(where: ScratchDir): Promise<Source<MultusCache>> {
  const files = await readScratchDir(where, {
    parseName: (name) => (isFullId(name) ? { sandboxId: name } : undefined),
    judge: judgeMultusCache,
    // multus hands its own directory to libcni as the place for its delegates' results.
    ignore: (entry) => entry.name === "results" && entry.kind === "directory",
  });
  return files.status === "read" ? read({ dir: where.dir, files: files.value }, files.oddities) : files;
}

/** A list of at least one delegate. multus takes the first element without asking and dies on `[]` and `null`. */
export function judgeMultusCache(text: string): Judgement {
  const delegates = parseJson(text);
  return Array.isArray(delegates) && delegates.length > 0 && delegates.every(isJsonObject) ? OK : CORRUPT;
}
