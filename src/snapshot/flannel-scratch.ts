import { parseJson } from "../host/json.ts";
import type { Source } from "../host/source.ts";
import { isFullId } from "./ids.ts";
import { CORRUPT, isJsonObject, OK, readScratchDir, type ScratchDir } from "./scratch-files.ts";
import type { ScratchFile } from "./types.ts";

/** `<dir>/<sandbox id>`: the configuration that flannel made for its delegate (bridge) on ADD and needs on DEL. */
export async function readFlannelScratch(where: ScratchDir): Promise<Source<readonly ScratchFile[]>> {
  return readScratchDir(where, {
    parseName: (name) => (isFullId(name) ? { sandboxId: name } : undefined),
    judge: (text) => (isJsonObject(parseJson(text)) ? OK : CORRUPT),
  });
}
