import { lstatSync } from "node:fs";
import { resolveOnHost } from "../snapshot/host-paths.ts";
import { MAX_FILE_BYTES } from "../snapshot/safe-fs.ts";
import type { HealReason } from "./heal-reason.ts";
import type { NodeTools } from "./node-tools.ts";

/**
 * Why the runtime must not be asked to read what lies in the place of this sandbox's result file. On DEL libcni opens
 * it whatever it is and reads it whole: a FIFO holds the call for ever, and gigabytes end up in the runtime's memory.
 */
export async function unreadableEntry(sandboxId: string, tools: NodeTools): Promise<HealReason | undefined> {
  for (const path of await tools.facts.resultFiles(sandboxId)) {
    const stats = lstatSync(resolveOnHost(tools.hostRoot, path, "keep"), { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (!stats.isFile()) return { code: "not-a-plain-file", path };
    if (stats.size > MAX_FILE_BYTES) return { code: "file-too-large", path, bytes: stats.size };
  }
  return undefined;
}
