import { readdirSync, statSync } from "node:fs";
import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { type ProcessStat, parseListeningSockets, readProcFile, readProcLink } from "../host/proc.ts";
import { provePath } from "../host/trusted-path.ts";
import type { ProcessProver } from "./trusted-process.ts";

/** The socket of thick multus on the node: upstream's manifest, and OpenShift's. */
const SOCKETS = ["/run/multus/multus.sock", "/run/multus/socket/multus.sock"] as const;
const MAX_SOCKET_LIST_BYTES = 16 * 1024 * 1024;

/**
 * The daemon of thick multus, which runs delegates instead of the runtime. It runs in a container, like any pod, so its
 * name and cgroup prove nothing. The proof is the node's own multus socket: only root can replace it, and this process
 * listens on it.
 */
export function findMultusDaemons(
  root: string,
  processes: readonly ProcessStat[],
  prover: ProcessProver,
  places: readonly string[] = SOCKETS,
): readonly ProcessStat[] {
  const sockets = places
    .filter((path) => provePath(root, path).kind === "trusted")
    .map((path) => ({
      path,
      identity: identityOf(resolveOnHost(root, path, "follow")),
    }));
  if (sockets.every(({ identity }) => identity === undefined)) return [];
  const list = readProcFile(hostPath(root, "/proc/1/net/unix"), MAX_SOCKET_LIST_BYTES);
  if (list.kind !== "content") return [];
  // In its container the directory may be mounted elsewhere: /host/run/multus/multus.sock.
  const listening = parseListeningSockets(list.text).filter(({ path }) => path.endsWith("/multus.sock"));

  return processes.filter(({ pid, comm }) => {
    if (comm !== "multus-daemon" || prover.proveOwner(pid).kind === "refused") return false;
    const dir = hostPath(root, `/proc/${pid}`);
    const held = descriptorsOf(`${dir}/fd`);
    return listening.some(({ inode, path }) => {
      if (!held.has(`socket:[${inode}]`)) return false;
      const bound = identityOf(resolveOnHost(posix.join(dir, "root"), path, "follow"));
      return bound !== undefined && sockets.some(({ identity }) => identity === bound);
    });
  });
}

function descriptorsOf(fdDir: string): ReadonlySet<string> {
  try {
    const links = readdirSync(fdDir).map((name) => readProcLink(`${fdDir}/${name}`));
    return new Set(links.flatMap((link) => (link.kind === "content" ? [link.text] : [])));
  } catch {
    // Ended, or permission denied: then it is not proven.
    return new Set();
  }
}

function identityOf(path: string): string | undefined {
  try {
    const stats = statSync(path);
    return stats.isSocket() ? `${stats.dev}:${stats.ino}` : undefined;
  } catch {
    // It does not exist: no multus, or thin multus.
    return undefined;
  }
}
