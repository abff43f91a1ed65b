import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { resolveOnHost } from "../../host/paths.ts";
import { errorCode } from "../../host/source.ts";

/** Read access to the host's files. Paths are the host's. */
export interface HostFiles {
  kind(path: string): "absent" | "file" | "directory" | "link" | "other";
  /** Follows links like the host. Undefined if it does not exist or is not a regular file. */
  read(path: string): string | undefined;
  /** The target of a link; undefined if it is not a link. */
  link(path: string): string | undefined;
  /** Sorted; empty if the directory does not exist. */
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

/** Absence is a result; permission denied is an error. */
function unlessAbsent<T>(read: () => T, absent: T): T {
  try {
    return read();
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return absent;
    throw thrown;
  }
}
