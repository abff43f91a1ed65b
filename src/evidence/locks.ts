import { valueOr } from "../host/source.ts";
import { isFullId, type SandboxId, sandboxName } from "../node/types/ids.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import { runtimeReports } from "./reports.ts";
import type { NodeView } from "./view.ts";

/** A hung plugin is a tree of processes with the same environment: the oldest one represents it. */
export function oldestOfEachSandbox(plugins: readonly PluginProcess[], cniCommand: string): readonly PluginProcess[] {
  const calls = plugins.filter((plugin) => plugin.cniCommand === cniCommand);
  const trees = Map.groupBy(calls, ({ sandboxId }) => sandboxId);
  return [...trees.values()].flatMap((tree) => tree.toSorted(byStart)[0] ?? []);
}

function byStart(one: PluginProcess, other: PluginProcess): number {
  return one.startedSecondsAfterBoot - other.startedSecondsAfterBoot;
}

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
  const holders = [...oldestOfEachSandbox(plugins, "ADD"), ...oldestOfEachSandbox(plugins, "DEL")].toSorted(byStart);
  const [oldest] = holders;
  const changedAt = cni.confChangedAt?.getTime();
  if (oldest === undefined || changedAt === undefined || boot.status !== "read")
    return { statusHangsMs, holders, confChangedSince: undefined };
  const startedAt = boot.value.startedAt.getTime() + oldest.startedSecondsAfterBoot * 1000;
  return { statusHangsMs, holders, confChangedSince: changedAt >= startedAt };
}

/** Matches the complete answer of the runtime: a longer text may be forged. */
const LOCK =
  /^failed to reserve sandbox name "([^"\\]{1,600})": name "([^"\\]{1,600})" is reserved for "([0-9a-f]{64})"$/;

/**
 * Holder id -> the blocked name, from refused creations. The runtime's own records have to agree that the holder has
 * this name.
 */
export function namesHeldInLogs(view: NodeView): ReadonlyMap<SandboxId, string> {
  const held = new Map<SandboxId, string>();
  for (const report of runtimeReports(view.snapshot)) {
    if (report.kind !== "failed" || report.operation !== "create-sandbox") continue;
    const [, wanted, name, id] = LOCK.exec(report.error) ?? [];
    if (name === undefined || name !== wanted || id === undefined || !isFullId(id)) continue;
    if (isNamed(id, name, view)) held.set(id, name);
  }
  return held;
}

/** Whether all sources that have the sandbox's name agree on this one, and at least one has it. */
function isNamed(id: SandboxId, name: string, view: NodeView): boolean {
  const { sandbox, metadata } = view.about(id);
  const known = [metadata?.name, sandbox === undefined ? undefined : sandboxName(sandbox.pod)];
  const names = known.filter((one) => one !== undefined && one !== "");
  return names.length > 0 && names.every((one) => one === name);
}
