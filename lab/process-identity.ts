import { readFileSync } from "node:fs";

/** A pid is reused; together with the start time it identifies one process. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string;
}

/** The process with this pid; undefined if there is none or only a zombie. `proc`: that of another pid namespace. */
export function identify(pid: number, proc = "/proc"): ProcessIdentity | undefined {
  let stat: string;
  try {
    stat = readFileSync(`${proc}/${pid}/stat`, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
  // The command's name is in parentheses and may contain anything, including parentheses and spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const startTicks = fields[19];
  if (startTicks === undefined || fields[0] === "Z") return undefined;
  return { pid, startTicks };
}

export function isAlive(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startTicks === process.startTicks;
}

export function killProcess(target: ProcessIdentity): void {
  if (!isAlive(target)) return;
  try {
    process.kill(target.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
