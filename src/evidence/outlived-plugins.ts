import type { PluginProcess } from "../node/types/runtime.ts";
import type { NodeView } from "./view.ts";

/** A plugin that is not blocked ends within this time after its runtime, and takes down what it had set up. */
const GRACE_MS = 30_000;

/**
 * Whether its runtime has ended and it did not: nothing waits for its result, and the runtime that runs now has no call
 * to roll back. systemd leaves such processes in the unit's cgroup (KillMode=process). A delegate of thick multus
 * belongs to the daemon.
 */
export function hasOutlivedRuntime(plugin: PluginProcess, { snapshot, policy, runtimeUpSeconds }: NodeView): boolean {
  const { process } = snapshot.runtime;
  if (process === undefined || runtimeUpSeconds === undefined || plugin.origin === "multus-daemon") return false;
  if (plugin.startedSecondsAfterBoot >= process.startedSecondsAfterBoot) return false;
  return runtimeUpSeconds * 1000 >= Math.min(policy.inflightGraceMs, GRACE_MS);
}
