import { lstatSync } from "node:fs";
import { join } from "node:path";
import { resolveOnHost } from "../../host/host-paths.ts";
import { listDirectory } from "../../host/safe-fs.ts";
import { provePath } from "../../host/trusted-path.ts";

/**
 * Why nothing is executed from the CNI directories; undefined when everything in them is root's. All of it, not the
 * plugin alone: a plugin runs others from there (its IPAM plugin, its delegates), and not all are named in its
 * configuration.
 */
export function doubtOfPlugins(hostRoot: string, binDirs: readonly string[]): string | undefined {
  for (const dir of binDirs) {
    const trust = provePath(hostRoot, dir);
    if (trust.kind === "missing") continue;
    if (trust.kind === "refused") return inWords(trust);
    const listing = listDirectory(resolveOnHost(hostRoot, dir, "follow"));
    if (listing.kind === "refused") return `${dir} ${listing.reason}, so its plugins are not run`;
    if (listing.kind === "absent") continue;
    for (const { name, kind } of listing.entries) {
      const path = join(dir, name);
      if (kind === "directory" || !isExecutable(resolveOnHost(hostRoot, path, "follow"))) continue;
      const owner = provePath(hostRoot, path);
      if (owner.kind === "refused") return inWords(owner);
    }
  }
  return undefined;
}

function inWords({ detail, next }: { readonly detail: string; readonly next: string }): string {
  return `no CNI plugin is run: ${detail}. ${next}`;
}

function isExecutable(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && (stats.mode & 0o111) !== 0;
}
