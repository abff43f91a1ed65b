import { clearNodeDir, type NodeDir } from "./node-dir.ts";

/** Existing nodes of this process. */
const standing = new Set<NodeDir>();
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The node is cleaned up when this process ends, unless it is removed before. */
export function clearAtExit(dir: NodeDir): void {
  if (standing.size === 0) arm();
  standing.add(dir);
}

export function forgetAtExit(dir: NodeDir): void {
  standing.delete(dir);
  if (standing.size === 0) disarm();
}

function arm(): void {
  process.on("exit", clearAll);
  process.on("disconnect", endWithParent);
  for (const signal of SIGNALS) process.on(signal, clearAndDie);
}

function disarm(): void {
  process.off("exit", clearAll);
  process.off("disconnect", endWithParent);
  for (const signal of SIGNALS) process.off(signal, clearAndDie);
}

function clearAll(): void {
  for (const dir of standing) clearNodeDir(dir);
  standing.clear();
}

/** A worker of the test runner does not outlive it: no one waits for its tests any more. */
function endWithParent(): void {
  clearAndDie("SIGTERM");
}

/** Dies by the same signal again, without a handler, so that the parent process sees the signal. */
function clearAndDie(signal: NodeJS.Signals): void {
  clearAll();
  disarm();
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}
