import type { ProcessStat } from "./proc-parse.ts";
import { isRuntimeName } from "./runtime-process.ts";

/** Longer chains of parents are not found on any node, and a table that changed while it was read may hold a ring. */
const MAX_GENERATIONS = 64;

/**
 * Whether one process descends from another, which cannot be forged: the kernel keeps the chain of parents,
 * and where a parent has ended, the session. A process joins a session only by being forked in it.
 */
export function descentIn(processes: readonly ProcessStat[]): (child: ProcessStat, ancestor: ProcessStat) => boolean {
  const byPid = new Map(processes.map((stat) => [stat.pid, stat]));

  function hasAncestor(child: ProcessStat, pid: number): boolean {
    let current: ProcessStat | undefined = child;
    for (let generation = 0; current !== undefined && generation < MAX_GENERATIONS; generation += 1) {
      if (current.parentPid === pid) return pid !== 0;
      current = byPid.get(current.parentPid);
    }
    return false;
  }

  /** A runtime that somebody has started from a shell shares the session with whatever else was started there. */
  function opensSessionAlone(stat: ProcessStat): boolean {
    if (stat.session === stat.pid) return true;
    const leader = byPid.get(stat.session);
    return leader !== undefined && isRuntimeName(leader.comm) && hasAncestor(stat, leader.pid);
  }

  return (child, ancestor) =>
    child.pid !== ancestor.pid &&
    (hasAncestor(child, ancestor.pid) || (child.session === ancestor.session && opensSessionAlone(ancestor)));
}
