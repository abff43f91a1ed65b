import { lstatSync, statfsSync } from "node:fs";
import { eachPaced } from "../host/concurrency.ts";
import { resolveOnHost } from "../host/paths.ts";
import { type DirEntry, describeKind, failedListing, listDirectory, MAX_ENTRIES } from "../host/safe-fs.ts";
import { absent, errorLabel, failed, type Oddity, read, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { NetnsEntry } from "./types/cni.ts";

export const DEFAULT_NETNS_DIR = "/run/netns";

export interface NetnsDir {
  readonly root: string;
  readonly dir: string;
  readonly maxEntries?: number;
  readonly signal?: AbortSignal;
}

/** NSFS_MAGIC of the kernel: the statfs type of a namespace that is mounted on a file. */
const NSFS_MAGIC = 0x6e736673;

/** The named network namespaces of the node: `cni-…` of containerd, UUIDs of CRI-O, and those of other tools. */
export async function readNetns(where: NetnsDir): Promise<Source<readonly NetnsEntry[]>> {
  const { root, dir, maxEntries = MAX_ENTRIES, signal } = where;
  const opened = resolveOnHost(root, dir, "keep");
  const listing = listDirectory(opened, maxEntries);
  if (listing.kind === "absent") return absent(`there is no ${dir}`);
  if (listing.kind === "refused") return failedListing(dir, listing);

  const found: NetnsEntry[] = [];
  const oddities: Oddity[] = listing.undecodable.map((name) => ({
    path: `${dir}/${name}`,
    reason: "its name is not valid UTF-8",
  }));
  const finished = await eachPaced(listing.entries, signal, (entry) => {
    const outcome = readEntry(dir, opened, entry);
    if (outcome === undefined) return;
    if ("reason" in outcome) oddities.push(outcome);
    else found.push(outcome);
  });
  if (!finished) return failed(`${dir} was not read to its end in time (${listing.entries.length} entries)`);
  return read(found, oddities);
}

function readEntry(dir: string, opened: string, { name, kind }: DirEntry): NetnsEntry | Oddity | undefined {
  const path = `${dir}/${printable(name)}`;
  if (path !== `${dir}/${name}`) return { path, reason: "its name holds control characters" };
  if (kind !== "file") return { path, reason: `is ${describeKind(kind)} where a namespace belongs` };
  try {
    const stats = lstatSync(`${opened}/${name}`, { bigint: true, throwIfNoEntry: false });
    if (stats === undefined) return undefined;
    const mounted = statfsSync(`${opened}/${name}`).type === NSFS_MAGIC;
    return { path, name, inode: mounted ? stats.ino : undefined, modifiedAt: stats.mtime };
  } catch (error) {
    return errorLabel(error) === "ENOENT" ? undefined : { path, reason: `could not be read (${errorLabel(error)})` };
  }
}
