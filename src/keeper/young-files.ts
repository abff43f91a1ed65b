import { lstatSync } from "node:fs";
import { listDirectory } from "../host/safe-fs.ts";
import { eachPaced } from "../node/process-table.ts";

/**
 * Older files have been written back by the kernel: by default it starts after 30 s (vm.dirty_expire_centisecs) and
 * checks every 5 s.
 */
const YOUNG_MS = 60_000;

export type YoungFiles =
  | { readonly kind: "listed"; readonly names: readonly string[] }
  | { readonly kind: "refused"; readonly reason: string };

/** Files of a directory that changed since then, by default within the last minute; includes those from the future. */
export async function youngFiles(dir: string, sinceMs: number = Date.now() - YOUNG_MS): Promise<YoungFiles> {
  const listing = listDirectory(dir);
  if (listing.kind === "absent") return { kind: "listed", names: [] };
  if (listing.kind === "refused") return listing;
  const names: string[] = [];
  await eachPaced(listing.entries, undefined, ({ name, kind }) => {
    if (kind === "file" && changedAtMs(`${dir}/${name}`) > sinceMs) names.push(name);
  });
  return { kind: "listed", names };
}

function changedAtMs(path: string): number {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats === undefined ? 0 : Math.max(stats.mtimeMs, stats.ctimeMs);
  } catch {
    // The directory was replaced meanwhile: the new one is swept separately.
    return 0;
  }
}
