import { posix } from "node:path";
import { eachPaced } from "../host/concurrency.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { holdsOpen, type ProcessStat, parseListeningSockets, procLink, readProcFile } from "../host/proc.ts";
import { inodeOf } from "../host/safe-fs.ts";
import { absent, failed, read, type Source } from "../host/source.ts";
import { provePath } from "../host/trusted-path.ts";
import { type Doubt, type EndpointSources, type Found, findRuntime } from "../runtime/find.ts";
import { endpointOfRunningKubelet } from "./kubelet-process.ts";
import { type ProcessTable } from "./process-table.ts";
import { isRootsService, processProver } from "./trusted-process.ts";
import type { ProcessId } from "./types/runtime.ts";

/** Tens of thousands of sockets at a hundred bytes each. */
const MAX_SOCKET_LIST_BYTES = 16 * 1024 * 1024;

const RUNTIMES = /^(?:containerd(?!-shim)|k3s|rke2|k0s|crio|cri-docker|kubelite|dockerd|isulad)/;

/** Whether a process of that name may be a container runtime or embed one. */
export function isRuntimeName(comm: string): boolean {
  return RUNTIMES.test(comm);
}

/**
 * The process that listens on a runtime's socket. Unix sockets are listed by network namespace, with the path that
 * their owner used: a pod in the host network may have one with the same path in its own root directory, so only a
 * proven service of the node counts.
 */
export async function findRuntimeProcess(query: {
  readonly root: string;
  readonly socketPath: string;
  readonly table: Source<ProcessTable>;
  readonly signal?: AbortSignal;
}): Promise<Source<ProcessId>> {
  const { root, socketPath, table, signal } = query;
  if (table.status !== "read") return table;
  const links = listeningInodes(root, socketPath);
  if (links === undefined) return failed("the list of unix sockets, /proc/net/unix, could not be read");
  if (links.size === 0) return absent(`no process of this network namespace listens on ${socketPath}`);

  const proc = hostPath(root, "/proc");
  const prover = processProver(root);
  let denied = false;
  // The newest first: an old runtime may still hold the socket that a newer one has replaced at the same path.
  for (const candidates of likelyFirst(table.value.processes)) {
    let found: ProcessStat | undefined;
    const finished = await eachPaced(candidates, signal, (stat) => {
      if (found !== undefined) return;
      // The owner first: any user may start processes of that name with millions of open files.
      if (prover.proveHostRoot(stat.pid).kind === "refused") return;
      const holds = holdsOpen(`${proc}/${stat.pid}`, links);
      if (holds === "denied") denied = true;
      else if (holds && isRootsService(prover.proveService(stat.pid))) found = stat;
    });
    if (found !== undefined) {
      return read({ pid: found.pid, startedSecondsAfterBoot: found.startedSecondsAfterBoot });
    }
    if (!finished) return failed(`the process behind ${socketPath} was not found in time`);
  }
  if (denied)
    return failed(`the process behind ${socketPath} cannot be searched for: permission denied`, "run unghost as root");
  return absent(`the process behind ${socketPath} is not one of this pid namespace`);
}

/**
 * As shown in a process's fd directory. Reads the sockets of the node's first process, because ours may be in another
 * network namespace.
 */
function listeningInodes(root: string, socketPath: string): ReadonlySet<string> | undefined {
  for (const path of ["/proc/1/net/unix", "/proc/net/unix"]) {
    const list = readProcFile(hostPath(root, path), MAX_SOCKET_LIST_BYTES);
    if (list.kind !== "content") continue;
    const name = nameOnHost(root, socketPath);
    const wanted = canonicalOnHost(root, name);
    const listening = parseListeningSockets(list.text).filter(
      // Few have the same base name, and only those are resolved on disk.
      ({ path: bound }) => LAST.exec(bound)?.[0] === LAST.exec(name)?.[0] && canonicalOnHost(root, bound) === wanted,
    );
    return new Set(listening.map(({ inode }) => `socket:[${inode}]`));
  }
  return undefined;
}

const LAST = /[^/]*$/;

function likelyFirst(processes: readonly ProcessStat[]): readonly (readonly ProcessStat[])[] {
  const newestFirst = processes.toSorted((one, other) => other.startedSecondsAfterBoot - one.startedSecondsAfterBoot);
  return [
    newestFirst.filter(({ comm }) => isRuntimeName(comm)),
    newestFirst.filter(({ comm }) => !isRuntimeName(comm)),
  ];
}

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

/** The node's runtime, at a socket that only root can replace; if several answer, a proven kubelet decides. */
export async function findNodeRuntime(
  where: Omit<EndpointSources, "doubtOf"> & { readonly timeoutMs: number },
): Promise<Found> {
  const { hostRoot, timeoutMs } = where;
  return await findRuntime({
    ...where,
    doubtOf: (path, inHost) => doubtOf(inHost ? hostRoot : "/", path),
    runningKubelet: () => endpointOfRunningKubelet(hostRoot, AbortSignal.timeout(timeoutMs)),
  });
}

function doubtOf(root: string, path: string): Doubt | undefined {
  const trust = provePath(root, path);
  return trust.kind === "refused" ? trust : undefined;
}
