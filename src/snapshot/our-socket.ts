import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { procLink } from "../host/proc.ts";
import { inodeOf } from "../host/safe-fs.ts";

/** Converts the socket path of this process into the node's path. */
export function nameOnHost(root: string, socketPath: string): string {
  const top = hostPath("/", root);
  if (top === "/") return hostPath("/", socketPath);
  return socketPath.startsWith(`${top}/`) ? socketPath.slice(top.length) : hostPath("/", socketPath);
}

/** Resolves links like the node. /var/run is a link to /run on every distribution. */
export function canonicalOnHost(root: string, path: string): string {
  const resolved = nameOnHost(root, resolveOnHost(root, path, "follow"));
  return resolved.replace(/^\/var\/run\//, "/run/");
}

/**
 * Whether an address in a process's arguments is the socket of the scanned runtime, as seen by that process: a second
 * containerd in its own mount namespace may have its socket at the same path.
 */
export function socketComparer(root: string, socketPath: string): (pid: number, address: string) => boolean {
  const proc = hostPath(root, "/proc");
  const wanted = canonicalOnHost(root, nameOnHost(root, socketPath));
  const identity = inodeOf(socketPath);
  const initMounts = procLink(`${proc}/1/ns/mnt`);
  const seenByInit = new Map<string, boolean>();

  const seenIn = (view: string, address: string) => inodeOf(resolveOnHost(view, address, "follow"));

  function isInitsView(address: string): boolean {
    const seen = seenIn(root, address);
    // If one of them cannot be resolved from here, the paths are compared.
    const isKnown = seen !== undefined && identity !== undefined;
    return isKnown ? seen === identity : canonicalOnHost(root, address) === wanted;
  }

  return (pid, address) => {
    if (!address.startsWith("/")) return false;
    if (procLink(`${proc}/${pid}/ns/mnt`) !== initMounts) {
      return identity !== undefined && seenIn(posix.join(proc, String(pid), "root"), address) === identity;
    }
    const known = seenByInit.get(address) ?? isInitsView(address);
    seenByInit.set(address, known);
    return known;
  };
}
