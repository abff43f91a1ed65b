import { type Child, startChild } from "../child/start-child.ts";

/**
 * Ends this process by SIGKILL at the given time, should its own timers not do so: a synchronous call that hangs (a file
 * on a network file system whose server is gone) blocks every timer of the engine. It is a process of its own, watches a
 * pipe that closes when this process ends, and needs sh, timeout and cat; without them there is no such net, only the
 * service manager's. A process that hangs in the kernel (state D) cannot be ended by anybody.
 */
export function startWatchdog(afterMs: number): Child {
  const seconds = String(Math.ceil(afterMs / 1000));
  return startChild(["sh", "-c", WATCH, "sh", seconds], { stdio: ["pipe", "ignore", "ignore"] });
}

/** 124 is coreutils' code for a timeout, 143 busybox'. The parent cannot be another one: its end of the pipe is open. */
const WATCH = `timeout "$1" cat >/dev/null
case $? in 124 | 143) kill -KILL $PPID ;; esac`;
