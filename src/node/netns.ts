import { lstatSync, statfsSync } from "../host/guarded-fs.ts";
import { describeKind, type HostDir, readEachEntry } from "../host/safe-fs.ts";
import { errorLabel, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { NetnsEntry } from "./types/cni.ts";

export const DEFAULT_NETNS_DIR = "/run/netns";

/** NSFS_MAGIC of the kernel: the statfs type of a namespace that is mounted on a file. */
const NSFS_MAGIC = 0x6e736673;

/** The named network namespaces of the node: `cni-…` of containerd, UUIDs of CRI-O, and those of other tools. */
export async function readNetns(where: HostDir): Promise<Source<readonly NetnsEntry[]>> {
  return await readEachEntry(where, ({ name, kind }, opened, passOver) => {
    const path = `${where.dir}/${name}`;
    if (printable(name) !== name) return passOver("its name holds control characters");
    if (kind !== "file") return passOver(`is ${describeKind(kind)} where a namespace belongs`);
    try {
      const stats = lstatSync(opened, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) return undefined;
      const mounted = statfsSync(opened).type === NSFS_MAGIC;
      return { path, name, inode: mounted ? stats.ino : undefined, modifiedAt: stats.mtime };
    } catch (error) {
      return errorLabel(error) === "ENOENT" ? undefined : passOver(`could not be read (${errorLabel(error)})`);
    }
  });
}
