import { posix } from "node:path";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { type ProcessStat, procLink, procText } from "../host/proc.ts";
import { entriesIn, inodeOf } from "../host/safe-fs.ts";
import { containerIdsOf, isSystemService } from "./cgroup-path.ts";
import { findMultusDaemons } from "./multus-daemon.ts";
import { isRuntimeName } from "./runtime-process.ts";
import type { ProcessProver } from "./trusted-process.ts";
import type { PluginOrigin } from "./types/runtime.ts";

interface PluginQuestion {
  readonly root: string;
  readonly processes: readonly ProcessStat[];
  readonly prover: ProcessProver;
  /** The process that listens on the runtime's socket; undefined if unknown. */
  readonly runtimePid: number | undefined;
  /** What was already read of /proc/<pid>/cgroup. */
  readonly cgroups: ReadonlyMap<number, string>;
}

export interface PluginOrigins {
  /**
   * Without its arguments and environment, which are read of these processes only. The directories are undefined as long
   * as the runtime has not reported them.
   */
  mayBePlugin(cniBinDirs: readonly string[] | undefined): (stat: ProcessStat) => boolean;
  originOf(stat: ProcessStat, argv: readonly string[], cniBinDirs: readonly string[]): PluginOrigin | undefined;
}

/** The kernel truncates the name of a process. */
const NAME_LENGTH = 15;

/**
 * Who started a process with CNI's variables. Any process can set them, so they count only for descendants of the
 * runtime, or for programs in the CNI directories that run as root outside of containers. Delegates of thick multus run
 * in the container of its daemon; they count as its descendants.
 */
export function pluginOrigins(question: PluginQuestion): PluginOrigins {
  const { root, processes, prover, runtimePid, cgroups } = question;
  const proc = hostPath(root, "/proc");
  const cgroupOf = (pid: number) => prover.cgroupOf(cgroups.get(pid) ?? procText(`${proc}/${pid}/cgroup`));
  const descends = descentIn(processes);
  const runtime = processes.find(({ pid }) => pid === runtimePid);
  const runtimesService = runtime === undefined ? undefined : serviceOf(runtime.pid);
  let daemons: readonly ProcessStat[] | undefined;

  /** The service's cgroup, in which the runtime's child processes stay when the runtime itself is restarted. */
  function serviceOf(pid: number): string | undefined {
    const cgroup = cgroupOf(pid);
    return isSystemService(cgroup) ? JSON.stringify(cgroup) : undefined;
  }

  function isOfRuntime(stat: ProcessStat): boolean {
    if (runtime === undefined || stat.pid === runtime.pid) return false;
    return descends(stat, runtime) || (runtimesService !== undefined && serviceOf(stat.pid) === runtimesService);
  }

  /**
   * By the executable, under its own name or argv[0] (k3s has one program with many names), or by the script of an
   * interpreter.
   */
  function isInCniDirectory(pid: number, argv: readonly string[], cniBinDirs: readonly string[]): boolean {
    const link = `${proc}/${pid}/exe`;
    const executable = inodeOf(link);
    if (executable === undefined || prover.proveExecutable(pid).kind === "refused") return false;
    const names = [procLink(link), argv[0]].map((path) => posix.basename(path ?? "")).filter((name) => name !== "");
    const script = argv[1]?.startsWith("/") ? inodeOf(resolveOnHost(root, argv[1], "follow")) : undefined;
    const isIn = (dir: string, name: string, file: string | undefined) =>
      file !== undefined && inodeOf(resolveOnHost(root, posix.join(dir, name), "follow")) === file;
    return cniBinDirs.some(
      (dir) => names.some((name) => isIn(dir, name, executable)) || isIn(dir, posix.basename(argv[1] ?? ""), script),
    );
  }

  function isOfMultus(stat: ProcessStat): boolean {
    daemons ??= findMultusDaemons(root, processes, prover);
    return daemons.some(
      (daemon) => descends(stat, daemon) && sharesPidNamespace(stat, daemon) && sharesContainer(stat, daemon),
    );
  }

  function sharesPidNamespace(one: ProcessStat, other: ProcessStat): boolean {
    return procLink(`${proc}/${one.pid}/ns/pid`) === procLink(`${proc}/${other.pid}/ns/pid`);
  }

  function sharesContainer(one: ProcessStat, other: ProcessStat): boolean {
    const [ids, others] = [one, other].map(({ pid }) => containerIdsOf(cgroupOf(pid)).join());
    return ids === others;
  }

  /** A script has its own name, and a program with many names the one that it was started with. */
  function isNamedLike(names: ReadonlySet<string>, { pid, comm }: ProcessStat): boolean {
    const program = posix.basename(procLink(`${proc}/${pid}/exe`) ?? "");
    return names.has(comm) || names.has(program.slice(0, NAME_LENGTH));
  }

  return {
    mayBePlugin: (cniBinDirs) => {
      const names = cniBinDirs && namesIn(root, cniBinDirs);
      return (stat) => {
        const isClose = isOfRuntime(stat) || names === undefined || isNamedLike(names, stat);
        if (isClose && prover.proveHostRoot(stat.pid).kind === "trusted") return true;
        return isOfMultus(stat) && prover.proveOwner(stat.pid).kind === "trusted";
      };
    },
    originOf: (stat, argv, cniBinDirs) => {
      if (prover.proveOwner(stat.pid).kind === "refused") return undefined;
      if (prover.proveHostRoot(stat.pid).kind === "trusted") {
        if (isOfRuntime(stat)) return "runtime";
        if (isInCniDirectory(stat.pid, argv, cniBinDirs)) return "cni-directory";
      }
      return isOfMultus(stat) ? "multus-daemon" : undefined;
    },
  };
}

function namesIn(root: string, dirs: readonly string[]): ReadonlySet<string> {
  const entries = dirs.flatMap((dir) => entriesIn(resolveOnHost(root, dir, "follow")));
  return new Set(entries.map(({ name }) => name.slice(0, NAME_LENGTH)));
}

/** No node has longer chains of parents, and a table that changed while it was read may contain a cycle. */
const MAX_GENERATIONS = 64;

/**
 * Whether one process descends from another, which cannot be forged: the kernel keeps the chain of parents, and if a
 * parent has ended, the session. A process joins a session only by being forked in it.
 */
function descentIn(processes: readonly ProcessStat[]): (child: ProcessStat, ancestor: ProcessStat) => boolean {
  const byPid = new Map(processes.map((stat) => [stat.pid, stat]));

  function hasAncestor(child: ProcessStat, pid: number): boolean {
    let current: ProcessStat | undefined = child;
    for (let generation = 0; current !== undefined && generation < MAX_GENERATIONS; generation += 1) {
      if (current.parentPid === pid) return pid !== 0;
      current = byPid.get(current.parentPid);
    }
    return false;
  }

  /** A runtime that was started from a shell shares the session with other processes of that shell. */
  function opensSessionAlone(stat: ProcessStat): boolean {
    if (stat.session === stat.pid) return true;
    const leader = byPid.get(stat.session);
    return leader !== undefined && isRuntimeName(leader.comm) && hasAncestor(stat, leader.pid);
  }

  return (child, ancestor) =>
    child.pid !== ancestor.pid &&
    (hasAncestor(child, ancestor.pid) || (child.session === ancestor.session && opensSessionAlone(ancestor)));
}
