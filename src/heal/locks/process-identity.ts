import { readFileSync, readlinkSync } from "node:fs";
import { errorCode } from "../../host/system-error.ts";
import { parseStat } from "../../snapshot/proc-parse.ts";

/** Names one process forever: pids are reused, a pid with its start time in one boot is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly boot: string;
  /** pids mean nothing outside their namespace: `pid:[4026531836]`. */
  readonly pidNamespace: string;
}

export function ownIdentity(): ProcessIdentity {
  const startedSecondsAfterBoot = startOf(process.pid);
  if (startedSecondsAfterBoot === undefined) {
    throw new Error(
      `/proc does not show process ${process.pid}, which is unghost itself: it belongs to other processes`,
    );
  }
  return {
    pid: process.pid,
    startedSecondsAfterBoot,
    boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    pidNamespace: readlinkSync("/proc/self/ns/pid"),
  };
}

/** `unknown`: it lives, or lived, where its pid cannot be looked up. */
export function livenessOf(other: ProcessIdentity, own: ProcessIdentity): "alive" | "dead" | "unknown" {
  if (other.boot !== own.boot) return "dead";
  if (other.pidNamespace !== own.pidNamespace) return "unknown";
  return startOf(other.pid) === other.startedSecondsAfterBoot ? "alive" : "dead";
}

/** Undefined for a process that is gone, or a zombie: it will never do anything again, reaped or not. */
function startOf(pid: number): number | undefined {
  try {
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
    return stat?.state === "Z" || stat?.state === "X" ? undefined : stat?.startedSecondsAfterBoot;
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw thrown;
  }
}
