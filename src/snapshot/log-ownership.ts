import { lstatSync, type Stats } from "node:fs";
import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { errorLabel } from "../host/source.ts";
import { printable } from "../host/text.ts";

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why a user other than root could have written or replaced a log; undefined if none could. Checks the path as given
 * and as resolved, from the node's root directory down.
 *
 * A group-writable directory is accepted: on Ubuntu /var/log belongs to root and the group syslog. A file that such a
 * group creates there is not root's, and is refused by its owner.
 */
export function whyNotRootsLog(root: string, path: string): string | undefined {
  const top = hostPath("/", root);
  const resolved = posix.join("/", posix.relative(top, resolveOnHost(root, path, "follow")));
  const entries = new Set([...entriesOf(posix.normalize(path)), ...entriesOf(resolved)]);
  for (const entry of entries) {
    const objection = objectionTo(root, entry);
    if (objection !== undefined) return `${printable(entry)} ${objection}`;
  }
  return undefined;
}

/** The path and every parent directory, the topmost first. */
function entriesOf(path: string): readonly string[] {
  return path === "/" ? ["/"] : [...entriesOf(posix.dirname(path)), path];
}

function objectionTo(root: string, entry: string): string | undefined {
  let stats: Stats;
  try {
    stats = lstatSync(hostPath(root, entry));
  } catch (error) {
    const code = errorLabel(error);
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : `could not be checked (${code})`;
  }
  // If unghost does not run as root, its own user gains nothing by deceiving it.
  if (stats.uid !== 0 && stats.uid !== process.geteuid?.()) return `is owned by uid ${stats.uid}, not by root`;
  if (stats.isSymbolicLink() || (stats.mode & OTHERS_WRITE) === 0) return undefined;
  const isSafe = stats.isDirectory() && (stats.mode & STICKY) !== 0;
  return isSafe ? undefined : `can be written by every user (mode ${(stats.mode & 0o7777).toString(8)})`;
}
