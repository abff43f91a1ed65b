import type { Stats } from "node:fs";
import { dirname } from "node:path";
import { statfsSync, statSync } from "../host/guarded-fs.ts";
import { hostPath } from "../host/paths.ts";
import {
  type CniEnviron,
  type ProcessStat,
  type ProcRead,
  parseCniEnviron,
  parseNamespaceLink,
  parseStat,
  procLink,
  procText,
  readProcFile,
  readProcLink,
  splitNul,
} from "../host/proc.ts";
import { isLate, type ProcessMemory } from "../host/process-memory.ts";
import { isTrustedUid, type PathTrust, provePath } from "../host/trusted-path.ts";
import {
  type CgroupPath,
  containerIdsOf,
  groupsBelow,
  isInContainer,
  isSystemService,
  parseCgroup,
} from "./cgroup-path.ts";

/**
 * The trust in a process. Its owner chooses name, arguments and environment; this proof uses only what the kernel and
 * root decide.
 */
export type ProcessTrust = { readonly kind: "trusted" } | ProcessRefusal;

export interface ProcessRefusal {
  readonly kind: "refused";
  readonly code:
    | "not-root"
    | "other-pid-namespace"
    | "other-mount-namespace"
    | "in-container"
    | "set-id-executable"
    | "executable-not-roots"
    | "unreadable";
  /** Completes a sentence that starts with the process. */
  readonly detail: string;
}

export interface ProcessProver {
  /** A service of the node: kubelet, the runtime. */
  proveService(pid: number): ProcessTrust;
  /**
   * A shim: of root, in the node's own pid namespace, in no container but its own (CRI-O may keep conmon, and Kata its
   * shim, in the cgroup of the container), with an executable of root. Accepts what was already read of the process,
   * because a node has a shim for each of its pods.
   */
  proveShim(shim: Pick<ProcessTraces, "stat" | "cgroup">, watched: string): ProcessTrust;
  /** Of root, in the node's own pid namespace and in no container. The executable is not checked. */
  proveHostRoot(pid: number): ProcessTrust;
  proveOwner(pid: number): ProcessTrust;
  /** Of root and in the node's own pid namespace; it may be in a container. */
  proveNodesRoot(pid: number): ProcessTrust;
  proveExecutable(pid: number): ProcessTrust;
  /** The cgroup of a process, relative to that of the node's init. */
  cgroupOf(text: string): readonly CgroupPath[];
}

/**
 * Whether it is a service that root runs on the node itself, even if others can write its executable. Enough to report
 * that it exists, not to trust its data.
 */
export function isRootsService(trust: ProcessTrust): boolean {
  return trust.kind === "trusted" || trust.code === "executable-not-roots";
}

const TRUSTED: ProcessTrust = { kind: "trusted" };
/** PROC_SUPER_MAGIC */
const PROCFS = 0x9fa0;
const SET_ID = 0o6000;
const GROUP_OR_OTHERS_WRITE = 0o022;

function refused(code: ProcessRefusal["code"], detail: string): ProcessRefusal {
  return { kind: "refused", code, detail };
}

const OTHER_PID_NAMESPACE = refused("other-pid-namespace", "is in another pid namespace than the node's init");

/** Proves processes of one /proc. "The node" is that of its process 1, which may itself be in namespaces. */
export function processProver(root: string): ProcessProver {
  const proc = hostPath(root, "/proc");
  // A simulated node, whose /proc is regular files that the operator who passed --host-root vouches for: missing
  // entries cannot be checked. Only root can replace a kernel's /proc.
  const isRecorded = !isProcfs(proc);
  const initCgroup = parseCgroup(procText(`${proc}/1/cgroup`));
  // If root may not read init (no CAP_SYS_PTRACE), our own: paths are resolved there.
  const initMountNs = procLink(`${proc}/1/ns/mnt`) ?? (proc === "/proc" ? procLink("/proc/self/ns/mnt") : undefined);
  const provenDirs = new Map<string, PathTrust>();
  /** Files that only root can replace: another process with the same executable is trusted, too. */
  const provenFiles = new Set<string>();

  const unreadable = (what: string): ProcessTrust =>
    isRecorded ? TRUSTED : refused("unreadable", `could not be checked: its ${what} cannot be read`);
  const cgroupOf = (text: string): readonly CgroupPath[] => groupsBelow(parseCgroup(text), initCgroup);

  const statusOf = (pid: number): string => procText(`${proc}/${pid}/status`);

  function proveOwner(pid: number, status: string = statusOf(pid)): ProcessTrust {
    const uids = /^Uid:\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)/m.exec(status)?.slice(1);
    if (uids === undefined) return unreadable("status");
    // All four: a set-uid program runs as root with the arguments and the environment of the user who started it.
    const foreign = uids.find((uid) => !isTrustedUid(Number(uid)));
    return foreign === undefined ? TRUSTED : refused("not-root", `runs as uid ${foreign}, not as root`);
  }

  /**
   * Much cheaper than the status, for thousands of processes of ordinary users. That there is none proves nothing: a
   * process that dumps no core belongs to root here.
   */
  function foreignOwner(pid: number): ProcessRefusal | undefined {
    const uid = statsOf(`${proc}/${pid}`)?.uid;
    return uid === undefined || isTrustedUid(uid) ? undefined : refused("not-root", `runs as uid ${uid}, not as root`);
  }

  function provePidNamespace(pid: number, status: string): ProcessTrust {
    const isInits = hasOnePid(status) ?? hasInitsPidNamespace(pid);
    if (isInits === undefined) return unreadable("pid namespace");
    return isInits ? TRUSTED : OTHER_PID_NAMESPACE;
  }

  /** From its pids in each namespace starting at that of this /proc, which are readable by everyone. */
  function hasOnePid(status: string): boolean | undefined {
    const pids = /^NSpid:\s+(.*)$/m.exec(status)?.[1];
    return pids === undefined ? undefined : !/\s/.test(pids.trim());
  }

  /** Before Linux 4.1 the status has no such line. */
  function hasInitsPidNamespace(pid: number): boolean | undefined {
    const [init, own] = [procLink(`${proc}/1/ns/pid`), procLink(`${proc}/${pid}/ns/pid`)];
    return init === undefined || own === undefined ? undefined : init === own;
  }

  function proveMountNamespace(pid: number, cgroup: readonly CgroupPath[]): ProcessTrust {
    const mountNs = procLink(`${proc}/${pid}/ns/mnt`);
    if (mountNs === undefined || initMountNs === undefined) return unreadable("mount namespace");
    if (mountNs === initMountNs || isSystemService(cgroup)) return TRUSTED;
    return refused("other-mount-namespace", "is in another mount namespace than the node's init");
  }

  function proveOutsideContainers(cgroup: readonly CgroupPath[], own?: string): ProcessTrust {
    const ids = containerIdsOf(cgroup);
    const isInOwn = own !== undefined && ids.length > 0 && ids.every((id) => id === own);
    return isInContainer(cgroup) && !isInOwn ? refused("in-container", "runs in a container") : TRUSTED;
  }

  /** The executable, by the kernel's link; it may be unlinked since. Then the directories that contained it. */
  function proveExecutable(pid: number): ProcessTrust {
    const link = `${proc}/${pid}/exe`;
    const stats = statsOf(link);
    if (stats === undefined) return unreadable("executable");
    const file = `${stats.dev}:${stats.ino}:${stats.mode}:${stats.uid}:${stats.ctimeMs}`;
    if (provenFiles.has(file)) return TRUSTED;
    const path = procLink(link)?.replace(/ \(deleted\)$/, "");
    if (path === undefined) return unreadable("executable");
    if ((stats.mode & SET_ID) !== 0) {
      return refused("set-id-executable", `runs ${path}, which anybody may start as another user (set-id)`);
    }
    if (!isTrustedUid(stats.uid) || (stats.mode & GROUP_OR_OTHERS_WRITE) !== 0) {
      return refused("executable-not-roots", `runs ${path}, which users other than root can replace`);
    }
    const isElsewhere = procLink(`${proc}/${pid}/ns/mnt`) !== initMountNs;
    const dir = dirname(isElsewhere ? `/proc/${pid}/root${path}` : path);
    const proven = provenDirs.get(dir) ?? provePath(root, dir);
    provenDirs.set(dir, proven);
    if (proven.kind === "refused") return refused("executable-not-roots", `runs ${path}: ${proven.detail}`);
    provenFiles.add(file);
    return TRUSTED;
  }

  /** Runs the checks in order. If the pid was reused meanwhile, some results would be about another process. */
  function proveAll(
    pid: number,
    started: number | undefined,
    proofs: readonly ((status: string) => ProcessTrust)[],
  ): ProcessTrust {
    const status = statusOf(pid);
    for (const prove of [(text: string) => proveOwner(pid, text), ...proofs]) {
      const trust = prove(status);
      if (trust.kind === "refused") return trust;
    }
    return startOf(pid) === started ? TRUSTED : refused("unreadable", "ended meanwhile");
  }

  function startOf(pid: number): ProcessStat["startedSecondsAfterBoot"] | undefined {
    return parseStat(procText(`${proc}/${pid}/stat`))?.startedSecondsAfterBoot;
  }

  return {
    cgroupOf,
    proveService: (pid) => {
      const started = startOf(pid);
      const cgroup = cgroupOf(procText(`${proc}/${pid}/cgroup`));
      return proveAll(pid, started, [
        (status) => provePidNamespace(pid, status),
        () => proveOutsideContainers(cgroup),
        () => proveMountNamespace(pid, cgroup),
        () => proveExecutable(pid),
      ]);
    },
    proveShim: ({ stat: { pid, startedSecondsAfterBoot }, cgroup }, watched) =>
      proveAll(pid, startedSecondsAfterBoot, [
        (status) => provePidNamespace(pid, status),
        () => proveOutsideContainers(cgroupOf(cgroup), watched),
        () => proveExecutable(pid),
      ]),
    proveHostRoot: (pid) =>
      foreignOwner(pid) ??
      proveAll(pid, startOf(pid), [
        (status) => provePidNamespace(pid, status),
        () => proveOutsideContainers(cgroupOf(procText(`${proc}/${pid}/cgroup`))),
      ]),
    proveOwner: (pid) => proveOwner(pid),
    proveNodesRoot: (pid) => {
      const foreign = foreignOwner(pid);
      if (foreign !== undefined) return foreign;
      const status = statusOf(pid);
      const owner = proveOwner(pid, status);
      return owner.kind === "refused" ? owner : provePidNamespace(pid, status);
    },
    proveExecutable,
  };
}

function isProcfs(proc: string): boolean {
  try {
    return statfsSync(proc).type === PROCFS;
  } catch {
    // No /proc: then no process can be proven, and none is trusted.
    return true;
  }
}

function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // Ended, or permission denied: then it is not proven.
    return undefined;
  }
}

/** What one process shows about sandboxes. */
export interface ProcessTraces {
  readonly stat: ProcessStat;
  /** The content of /proc/<pid>/cgroup. */
  readonly cgroup: string;
  readonly netns: bigint | "denied" | undefined;
  /** The CNI call it belongs to; never set for a shim. */
  readonly cni: CniEnviron | undefined;
  /** The id in its arguments, if it has the name of a shim. */
  readonly shim: ShimArguments | undefined;
  readonly argv: readonly string[];
  /** Why its arguments or environment are unknown, if they are. */
  readonly hidden: "denied" | "timeout" | undefined;
}

/** What a process shows without its memory; undefined if it ended meanwhile. */
export function readTraces(proc: string, stat: ProcessStat): ProcessTraces | undefined {
  const dir = `${proc}/${stat.pid}`;
  const cgroup = readProcFile(`${dir}/cgroup`);
  if (cgroup.kind === "gone") return undefined;
  const netns = readProcLink(`${dir}/ns/net`);
  return {
    stat,
    cgroup: textOf(cgroup),
    netns: netns.kind === "denied" ? "denied" : parseNamespaceLink(textOf(netns)),
    cni: undefined,
    shim: undefined,
    argv: [],
    hidden: netns.kind === "denied" ? "denied" : undefined,
  };
}

/** Adds its arguments and environment. */
export function withMemory(traces: ProcessTraces, { environ, cmdline }: ProcessMemory): ProcessTraces {
  const argv = splitNul(textOf(cmdline));
  const shim = isShim(traces.stat) ? shimArguments(argv) : undefined;
  const cni = isShim(traces.stat) ? undefined : parseCniEnviron(textOf(environ));
  return { ...traces, cni, shim, argv, hidden: traces.hidden ?? hiddenBy(environ) ?? hiddenBy(cmdline) };
}

function hiddenBy(read: ProcRead): ProcessTraces["hidden"] {
  if (read.kind === "denied") return "denied";
  return isLate(read) ? "timeout" : undefined;
}

function textOf(content: ProcRead): string {
  return content.kind === "content" ? content.text : "";
}

/** The kernel truncates a name to 15 characters, which cuts off `-runc-v2`. */
export function isShim({ comm }: Pick<ProcessStat, "comm">): boolean {
  return comm === "containerd-shim" || comm === "conmon" || comm === "conmonrs";
}

export interface ShimArguments {
  /** Of a sandbox, or of a container with its own shim. */
  readonly id: string;
  /** Docker's containers are in `moby`, those of ctr and nerdctl in `default`; conmon has none. */
  readonly isKubernetes: boolean;
  /** The socket of its containerd. */
  readonly address?: string;
}

/** `-namespace N -id ID -address SOCKET` of containerd's shims, `-c ID` of conmon, which podman uses like CRI-O. */
export function shimArguments(argv: readonly string[]): ShimArguments | undefined {
  const id = valueOf(argv, "-id", "--id", "-c", "--cid");
  if (!id) return undefined;
  const namespace = valueOf(argv, "-namespace", "--namespace");
  const address = valueOf(argv, "-address", "--address");
  const isKubernetes = (namespace ?? "k8s.io") === "k8s.io" && !argv.includes("--exit-command");
  return { id, isKubernetes, address };
}

/**
 * The same from the directory in which containerd starts a shim, `<state>/io.containerd.runtime.v2.task/<namespace>/<id>`:
 * the kernel shows it without the memory of the shim. `state` is the state directory of that containerd.
 */
export function shimAtWork(dir: string): (Omit<ShimArguments, "address"> & { readonly state: string }) | undefined {
  const [, state, namespace, id] =
    /^(\/.+)\/io\.containerd\.runtime\.v2\.task\/([^/]+)\/([0-9a-f]{64})(?: \(deleted\))?$/.exec(dir) ?? [];
  if (state === undefined || id === undefined) return undefined;
  return { id, isKubernetes: namespace === "k8s.io", state };
}

function valueOf(argv: readonly string[], ...flags: readonly string[]): string | undefined {
  const at = argv.findIndex((argument) => flags.includes(argument));
  return at === -1 ? undefined : argv[at + 1];
}
