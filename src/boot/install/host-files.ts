import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { resolveOnHost } from "../../host/host-paths.ts";
import { errorCode } from "../../host/system-error.ts";

/** The host's files as installing needs to see them. Paths are the host's own; nothing is changed through this. */
export interface HostFiles {
  kind(path: string): "absent" | "file" | "directory" | "link" | "other";
  /** Follows links as the host would. Undefined: not there, or no regular file. */
  read(path: string): string | undefined;
  /** Where a link points to; undefined when there is no link. */
  link(path: string): string | undefined;
  /** Sorted; none when the directory is not there. */
  names(directory: string): readonly string[];
}

export function hostFiles(root: string): HostFiles {
  const kept = (path: string): string => resolveOnHost(root, path, "keep");
  const followed = (path: string): string => resolveOnHost(root, path, "follow");
  const stats = (path: string) => unlessAbsent(() => lstatSync(path), undefined);
  return {
    kind: (path) => {
      const found = stats(kept(path));
      if (found === undefined) return "absent";
      if (found.isFile()) return "file";
      if (found.isDirectory()) return "directory";
      return found.isSymbolicLink() ? "link" : "other";
    },
    read: (path) => {
      const place = followed(path);
      return stats(place)?.isFile() ? unlessAbsent(() => readFileSync(place, "utf8"), undefined) : undefined;
    },
    link: (path) => {
      const place = kept(path);
      return stats(place)?.isSymbolicLink() ? readlinkSync(place) : undefined;
    },
    names: (directory) => unlessAbsent(() => readdirSync(followed(directory)).sort(), []),
  };
}

/** Absence is an answer; permission denied is not. */
function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read();
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return absent;
    throw thrown;
  }
}
