import { eachPaced } from "../host/concurrency.ts";
import { statSync } from "../host/guarded-fs.ts";
import { hostPath } from "../host/paths.ts";
import { countOpenFiles, procText } from "../host/proc.ts";
import { absent, failed, read, type Source, valueOr } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { ProcessTable } from "./process-table.ts";
import type { InotifyUse, Snapshot } from "./types/snapshot.ts";

const LIMIT = "/proc/sys/fs/inotify/max_user_instances";
const INSTANCE = "anon_inode:inotify";
const MAX_HOLDERS = 3;

const TROUBLE = /inotify|too many open files|inactive stream|deadline ?exceeded/i;

/** Every open file of every process of root is listed for it: only where something waits or fails. */
export function needsInotifyUse(hasDeadSandboxes: boolean, logs: Snapshot["logs"]): boolean {
  return hasDeadSandboxes || (valueOr(logs, undefined)?.lines ?? []).some(({ text }) => TROUBLE.test(text));
}

/** The inotify instances of root on this node, which all share one limit. */
export async function readInotifyUse(where: {
  readonly root: string;
  readonly table: Source<ProcessTable>;
  readonly signal?: AbortSignal;
}): Promise<Source<InotifyUse>> {
  const { root, table, signal } = where;
  const limit = Number.parseInt(procText(hostPath(root, LIMIT)), 10);
  if (Number.isNaN(limit)) return absent(`${LIMIT} cannot be read`);
  if (table.status !== "read") return table;
  const byName = new Map<string, number>();
  const finished = await eachPaced(table.value.processes, signal, ({ pid, comm }) => {
    const dir = hostPath(root, `/proc/${pid}`);
    // Cheap, and not conclusive: a process of another user that may not be dumped is listed as root's.
    if (ownerOf(dir) !== 0 || !/^Uid:\s*\d+\s+0\s/m.test(procText(`${dir}/status`))) return;
    const count = countOpenFiles(dir, INSTANCE);
    if (count === 0) return;
    byName.set(comm, (byName.get(comm) ?? 0) + count);
  });
  if (!finished) return failed("the open files of root's processes were not all read in time");
  const holders = [...byName]
    .map(([name, count]) => ({ name: printable(name), count }))
    .toSorted((one, other) => other.count - one.count);
  const used = holders.reduce((sum, { count }) => sum + count, 0);
  return read({ limit, used, holders: holders.slice(0, MAX_HOLDERS) });
}

function ownerOf(dir: string): number | undefined {
  try {
    return statSync(dir, { throwIfNoEntry: false })?.uid;
  } catch {
    // Ended meanwhile.
    return undefined;
  }
}
