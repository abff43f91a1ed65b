import { readFileSync } from "node:fs";
import { comparePidNamespace } from "../snapshot/pid-namespace.ts";
import { parseStat } from "../snapshot/proc-parse.ts";
import type { ProcessRef } from "../snapshot/types.ts";
import { errorCode } from "./system-error.ts";

/**
 * Sends a signal to a process that was read below `hostRoot`, and to no other: its namespace and start time are compared in
 * the moment before. Neither engine can hold a process by a pidfd; between the comparison and the signal lie some
 * microseconds, in which the kernel would have to hand out every other pid once.
 */
export function signalProcess(
  { pid, startedSecondsAfterBoot }: Pick<ProcessRef, "pid" | "startedSecondsAfterBoot">,
  signal: "SIGTERM" | "SIGKILL",
  hostRoot: string,
): "sent" | "gone" | "foreign" {
  if (pid <= 1) return "foreign";
  if (comparePidNamespace(hostRoot).kind !== "own") return "foreign";
  try {
    // In our own /proc: its pids are the ones that kill(2) takes.
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
    if (stat?.startedSecondsAfterBoot !== startedSecondsAfterBoot) return "gone";
    process.kill(pid, signal);
    return "sent";
  } catch (error) {
    // Ended by itself in between: that is what was wanted.
    if (errorCode(error) === "ENOENT" || errorCode(error) === "ESRCH") return "gone";
    throw error;
  }
}
