import { type Child, startChild } from "../host/child.ts";

/**
 * Kills this process with SIGKILL at the given time if its own timers do not: a hung synchronous call (a file on a
 * network file system whose server is gone) blocks every timer of the engine. The watchdog is a separate process that
 * watches a pipe, which closes when this process ends. It needs sh, timeout and cat; without them only the service
 * manager's timeout is left. A process that hangs in the kernel (state D) cannot be killed.
 */
export function startWatchdog(afterMs: number): Child {
  const seconds = String(Math.ceil(afterMs / 1000));
  return startChild(["sh", "-c", WATCH, "sh", seconds], { stdio: ["pipe", "ignore", "ignore"] });
}

/**
 * 124 is coreutils' exit code for a timeout, 143 busybox'. The parent pid cannot be reused: its end of the pipe is
 * open.
 */
const WATCH = `timeout "$1" cat >/dev/null
case $? in 124 | 143) kill -KILL $PPID ;; esac`;
