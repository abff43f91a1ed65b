import { statfsSync, statSync } from "node:fs";

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
  return hostRootFrom({ identity, isProcfs, isPod: Boolean(env["KUBERNETES_SERVICE_HOST"]) });
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
