import { posix, resolve } from "node:path";
import { lstatSync, readlinkSync, statfsSync, statSync } from "./guarded-fs.ts";

/** Maps an absolute path of the node to a path below `root`, whatever slashes and dots it contains. */
export function hostPath(root: string, path: string): string {
  // Normalising an absolute path removes every "..".
  const inside = posix.normalize(`/${path}`);
  const joined = posix.normalize(`/${root}/${inside}`);
  return joined.length > 1 && joined.endsWith("/") ? joined.slice(0, -1) : joined;
}

/** The kernel's limit of links in one path. */
const MAX_LINKS = 40;

/**
 * Like hostPath, with symlinks resolved as on the node. A container with the node mounted at /host would otherwise
 * follow `/host/var/run -> /run` into its own /run.
 *
 * `last` is whether a symlink at the end is followed or left for the caller to refuse.
 */
export function resolveOnHost(root: string, path: string, last: "follow" | "keep"): string {
  if (last === "keep" && hostPath("/", root) === "/") return hostPath("/", path);

  const todo = hostPath("/", path).split("/").filter(Boolean).reverse();
  let done = "/";
  for (let links = 0; todo.length > 0; ) {
    const name = todo.pop() ?? "";
    const next = posix.join(done, name);
    const target = todo.length === 0 && last === "keep" ? undefined : linkTarget(hostPath(root, next));
    if (target === undefined || links === MAX_LINKS) {
      done = next;
      continue;
    }
    links += 1;
    if (target.startsWith("/")) done = "/";
    todo.push(...target.split("/").filter(Boolean).reverse());
  }
  return hostPath(root, done);
}

/** A file that was named on the command line, relative to the current directory. On Windows, opening it follows links. */
export function namedFile(path: string): string {
  return process.platform === "win32" ? resolve(path) : resolveOnHost("/", resolve(path), "follow");
}

function linkTarget(path: string): string | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // lstat failed (permission, not a directory): opening the path fails with the same error, which is reported there.
    return undefined;
  }
}

/** Where `kubectl debug node` and most DaemonSets mount the node's root directory. */
const MOUNTED_AT = "/host";
/** PROC_SUPER_MAGIC */
const PROCFS = 0x9fa0;

/** Device and inode of a path's target; `denied` if the kernel does not let us follow it. */
type Identity = `${number}:${number}` | "missing" | "denied";

/** Injected by tests. */
export interface RootFacts {
  identity(path: string): Identity;
  isProcfs(path: string): boolean;
  readonly isPod: boolean;
}

/**
 * The node's root directory for this process. It is /host if the node's process 1 has its root there and this process
 * has another one. If the kernel does not show that root (no CAP_SYS_PTRACE), a pod with a procfs at /host/proc counts;
 * outside of a pod /host may be any rescue system, and is ignored.
 */
export function findHostRoot(env: Readonly<Record<string, string | undefined>>): string {
  return hostRootFrom({ identity, isProcfs, isPod: isPod(env) });
}

/** Kubelet sets it in every container. */
export function isPod(env: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(env["KUBERNETES_SERVICE_HOST"]);
}

export function hostRootFrom(facts: RootFacts): string {
  const mounted = facts.identity(MOUNTED_AT);
  if (mounted === "missing" || mounted === "denied" || mounted === facts.identity("/")) return "/";
  if (!facts.isProcfs(`${MOUNTED_AT}/proc`)) return "/";
  const initsRoot = facts.identity(`${MOUNTED_AT}/proc/1/root`);
  const isNode = initsRoot === "denied" ? facts.isPod : initsRoot === mounted;
  return isNode ? MOUNTED_AT : "/";
}

function identity(path: string): Identity {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? "missing" : `${stats.dev}:${stats.ino}`;
  } catch {
    return "denied";
  }
}

function isProcfs(path: string): boolean {
  try {
    return statfsSync(path).type === PROCFS;
  } catch {
    return false;
  }
}
