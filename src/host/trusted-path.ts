import type { Stats } from "node:fs";
import { posix } from "node:path";
import { lstatSync, readlinkSync, statfsSync, statSync } from "./guarded-fs.ts";
import { hostPath } from "./paths.ts";
import { errorLabel } from "./source.ts";
import { printable } from "./text.ts";

/**
 * Whether only root can change a path of the node: the file itself, every parent directory, and every link on the way.
 * A path that another user could create or replace is never used as a runtime's socket, executed, or read for
 * credentials.
 */
export type PathTrust =
  | { readonly kind: "trusted" }
  /** The path does not exist. Every existing parent directory belongs to root. */
  | { readonly kind: "missing" }
  | PathRefusal;

export interface PathRefusal {
  readonly kind: "refused";
  readonly code: "foreign-owner" | "writable-by-others" | "link-loop" | "unreadable";
  /** The entry that other users may change, as a path of the node. */
  readonly path: string;
  /** A sentence without its full stop. */
  readonly detail: string;
  readonly next: string;
}

/** The kernel's limit of links in one path. */
const MAX_LINKS = 40;
const GROUP_OR_OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Walks from the node's root directory, `root`, down to the path. Directories above `root` are not part of the node:
 * the operator who passes --host-root vouches for them. `isReadOnly`: whether a directory cannot be changed here,
 * whatever its mode.
 */
export function provePath(root: string, path: string, isReadOnly?: (dir: string) => boolean): PathTrust {
  const top = judgeEntry(
    "/",
    statsAt(() => statSync(hostPath(root, "/"))),
  );
  if (top !== undefined) return top;

  const todo = segmentsOf(hostPath("/", path));
  let base = "/";
  let done = "/";
  for (let links = 0; todo.length > 0; ) {
    const next = posix.join(done, todo.pop() ?? "");
    const opened = hostPath(root, next);
    const stats = statsAt(() => lstatSync(opened, { throwIfNoEntry: false }));
    const refusal = judgeEntry(next, stats);
    const isFixed =
      refusal?.kind === "refused" && refusal.code === "writable-by-others" && isReadOnly?.(opened) === true;
    if (refusal !== undefined && !isFixed) return refusal;
    if (!isLink(stats)) {
      done = next;
      continue;
    }
    if (isProcessRoot(opened)) {
      // The kernel follows this link to that process's root directory, whatever its text is; links below start from
      // there.
      const entered = judgeEntry(
        next,
        statsAt(() => statSync(opened)),
      );
      if (entered !== undefined) return entered;
      base = next;
      done = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) return linkLoop(path);
    const target = readlinkSync(opened);
    if (target.startsWith("/")) done = base;
    todo.push(...segmentsOf(target));
  }
  return { kind: "trusted" };
}

/** In reverse order, for pop(). */
function segmentsOf(path: string): string[] {
  return path.split("/").filter(Boolean).reverse();
}

type Seen = Stats | "missing" | { readonly errorCode: string };

function statsAt(read: () => Stats | undefined): Seen {
  try {
    return read() ?? "missing";
  } catch (error) {
    const code = errorLabel(error);
    return code === "ENOENT" || code === "ENOTDIR" ? "missing" : { errorCode: code };
  }
}

function isLink(seen: Seen): boolean {
  return typeof seen === "object" && !("errorCode" in seen) && seen.isSymbolicLink();
}

function judgeEntry(path: string, seen: Seen): Exclude<PathTrust, { kind: "trusted" }> | undefined {
  if (seen === "missing") return { kind: "missing" };
  const shown = printable(path);
  if ("errorCode" in seen) {
    const detail = `who owns ${shown} could not be checked (${seen.errorCode})`;
    return { kind: "refused", code: "unreadable", path: shown, detail, next: "Run unghost as root." };
  }
  if (!isTrustedUid(seen.uid)) {
    const detail = `${shown} is owned by uid ${seen.uid}, not by root`;
    const next = `Check who put it there, then: chown ${seen.isSymbolicLink() ? "-h " : ""}root: ${shown}`;
    return { kind: "refused", code: "foreign-owner", path: shown, detail, next };
  }
  if (!mayOthersReplace(seen)) return undefined;
  const detail = `${shown} can be written by users other than root (mode ${(seen.mode & 0o7777).toString(8)})`;
  const next = `Check what lies there, then: chmod go-w ${shown}`;
  return { kind: "refused", code: "writable-by-others", path: shown, detail, next };
}

/**
 * Links have no mode of their own. Writing to a socket means connecting, which replaces nothing. In a sticky directory
 * (/tmp) others may add entries and cannot replace root's; theirs are refused by their owner.
 */
function mayOthersReplace(stats: Stats): boolean {
  if ((stats.mode & GROUP_OR_OTHERS_WRITE) === 0 || stats.isSymbolicLink() || stats.isSocket()) return false;
  return !(stats.isDirectory() && (stats.mode & STICKY) !== 0);
}

/**
 * Root, or the user who runs unghost without being root: that user gains nothing by deceiving a program with the same
 * rights. So a simulated node or a test of an ordinary user follows the same rule.
 */
export function isTrustedUid(uid: number): boolean {
  return uid === 0 || uid === process.geteuid?.();
}

const PROCESS_ROOT = /\/proc\/(?:self|thread-self|\d+)\/(?:root|cwd)$/;
/** PROC_SUPER_MAGIC */
const PROCFS = 0x9fa0;

function isProcessRoot(path: string): boolean {
  return PROCESS_ROOT.test(path) && statfsSync(posix.dirname(path)).type === PROCFS;
}

function linkLoop(path: string): PathRefusal {
  const shown = printable(path);
  const detail = `${shown} leads through more than ${MAX_LINKS} symbolic links`;
  return { kind: "refused", code: "link-loop", path: shown, detail, next: `Check the links of ${shown}.` };
}
