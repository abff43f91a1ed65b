import { valueOr } from "../host/source.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import { oldestOfEachSandbox } from "./plugin-processes.ts";
import type { NodeView } from "./view.ts";

/**
 * How long a plugin may block the whole node. Kubelet reports the runtime as down 30 seconds after the last answered
 * Status, and the node becomes NotReady: after twice that time, one failed ADD costs less than the node.
 */
export const LOCK_GRACE_MS = 60_000;

export interface LockState {
  /** Status was not answered within this time. */
  readonly statusHangsMs: number;
  /** The plugin calls that hold the read lock, oldest first. */
  readonly holders: readonly PluginProcess[];
  /** Whether the configuration directory changed after the oldest call started; undefined if unknown. */
  readonly confChangedSince: boolean | undefined;
}

/**
 * go-cni holds a read lock during a plugin call. A change of the configuration directory requests the write lock, and
 * from then on Status and every later ADD or DEL wait behind it. Returns undefined while Status answers.
 */
export function cniLockState(view: NodeView): LockState | undefined {
  const { cri, processes, cni, boot } = view.snapshot;
  const statusHangsMs = valueOr(cri, undefined)?.statusHangsMs;
  if (statusHangsMs === undefined) return undefined;
  const plugins = valueOr(processes, undefined)?.plugins ?? [];
  const holders = [...oldestOfEachSandbox(plugins, "ADD"), ...oldestOfEachSandbox(plugins, "DEL")].toSorted(
    (one, other) => one.startedSecondsAfterBoot - other.startedSecondsAfterBoot,
  );
  const [oldest] = holders;
  const changedAt = cni.confChangedAt?.getTime();
  if (oldest === undefined || changedAt === undefined || boot.status !== "read")
    return { statusHangsMs, holders, confChangedSince: undefined };
  const startedAt = boot.value.startedAt.getTime() + oldest.startedSecondsAfterBoot * 1000;
  return { statusHangsMs, holders, confChangedSince: changedAt >= startedAt };
}
