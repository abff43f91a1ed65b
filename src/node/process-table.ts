import { eachPaced } from "../host/concurrency.ts";
import { hostPath } from "../host/paths.ts";
import { type ProcessStat, parseStat, procText } from "../host/proc.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { failed, read, type Source } from "../host/source.ts";
import type { Boot } from "./types/snapshot.ts";

/** The result of one pass over /proc; more about a process is read by the callers. */
export interface ProcessTable {
  readonly uptimeSeconds: number;
  /** Without kernel threads. */
  readonly processes: readonly ProcessStat[];
}

/** pid_max is at most 4 million, and every process is an entry. */
const MAX_PROC_ENTRIES = 1_000_000;

export async function readProcessTable(where: {
  readonly root: string;
  readonly signal?: AbortSignal;
}): Promise<Source<ProcessTable>> {
  const proc = hostPath(where.root, "/proc");
  const listing = listDirectory(proc, MAX_PROC_ENTRIES);
  if (listing.kind === "absent") return noProc(proc, "is not there");
  if (listing.kind === "refused") return noProc(proc, listing.reason);
  const uptimeSeconds = readUptime(where.root);
  if (uptimeSeconds === undefined) return noProc(proc, "is not the /proc of a kernel");

  const processes: ProcessStat[] = [];
  const finished = await eachPaced(listing.entries, where.signal, ({ name }) => {
    if (!/^\d+$/.test(name)) return;
    const stat = parseStat(procText(`${proc}/${name}/stat`));
    if (stat !== undefined && !stat.kernelThread) processes.push(stat);
  });
  if (!finished) return failed(`the processes in ${proc} were not listed to the end in time`);
  // With hidepid, processes of other users are silently missing; process 1 is always one of them.
  if (!processes.some(({ pid }) => pid === 1)) {
    return failed(`${proc} does not show the processes of other users`, "run unghost as root");
  }
  return read({ uptimeSeconds, processes });
}

function noProc(proc: string, reason: string): Source<ProcessTable> {
  return failed(`${proc} ${reason}: processes cannot be seen`, mountAt(proc));
}

export function readBoot(where: { readonly root: string; readonly now: Date }): Source<Boot> {
  const proc = hostPath(where.root, "/proc");
  const path = "/proc/sys/kernel/random/boot_id";
  const id = procText(hostPath(where.root, path)).trim();
  if (id === "") {
    return failed(`${path} could not be read: it is not known which boot of the node this is`, mountAt(proc));
  }
  const uptimeSeconds = readUptime(where.root);
  if (uptimeSeconds === undefined) {
    return failed("/proc/uptime could not be read: it is not known how long the node has been up", mountAt(proc));
  }
  return read({ id, uptimeSeconds, startedAt: new Date(where.now.getTime() - uptimeSeconds * 1000) });
}

function mountAt(proc: string): string {
  return `check that the node's /proc is mounted at ${proc}`;
}

/**
 * Seconds since the kernel started, on the clock of process start times. In an LXC container /proc/uptime is the age of
 * the container instead; the kernel cannot be younger than this process.
 */
export function readUptime(root: string): number | undefined {
  const seconds = Number.parseFloat(procText(hostPath(root, "/proc/uptime")));
  if (!Number.isFinite(seconds)) return undefined;
  const started = parseStat(procText(hostPath(root, "/proc/self/stat")))?.startedSecondsAfterBoot;
  return started === undefined ? seconds : Math.max(seconds, started + process.uptime());
}
