import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/host-paths.ts";
import { procLink } from "../host/proc-fs.ts";
import { inodeOf } from "../host/safe-fs.ts";

/** A runtime's socket as this process opens it, by the name that the node has for it. */
export function nameOnHost(root: string, socketPath: string): string {
  const top = hostPath("/", root);
  if (top === "/") return hostPath("/", socketPath);
  return socketPath.startsWith(`${top}/`) ? socketPath.slice(top.length) : hostPath("/", socketPath);
}

/** Links resolved as the node resolves them. /var/run is a link to /run on every distribution there is. */
export function canonicalOnHost(root: string, path: string): string {
  const resolved = nameOnHost(root, resolveOnHost(root, path, "follow"));
  return resolved.replace(/^\/var\/run\//, "/run/");
}

/**
 * Whether an address that a process was given is the socket of the scanned runtime, as that very process sees
 * it: a second containerd in a mount namespace of its own may have its socket under the same name.
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
    // With the one or the other not to be seen from here, their names have to do.
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
