import { hostPath } from "../host/paths.ts";
import { type ProcessStat, parseStat, readProcFile } from "../host/proc.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { failed, read, type Source } from "../host/source.ts";
import { readUptime } from "./boot.ts";
import { eachPaced } from "./pace.ts";

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
    const text = readProcFile(`${proc}/${name}/stat`);
    const stat = text.kind === "content" ? parseStat(text.text) : undefined;
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
  return failed(`${proc} ${reason}: processes cannot be seen`, `check that the node's /proc is mounted at ${proc}`);
}
