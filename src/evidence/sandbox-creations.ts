import { valueOr } from "../host/source.ts";
import { parseSandboxName, type SandboxId } from "../node/types/ids.ts";
import type { PluginProcess, Sandbox, SandboxState } from "../node/types/runtime.ts";
import type { Candidate } from "./candidates.ts";
import { isCreationDue } from "./creation-grace.ts";
import { wasNeverCreated, wasRecovered } from "./ending.ts";
import type { Kept } from "./finding.ts";
import { namesHeldInLogs } from "./name-locks.ts";
import { oldestOfEachSandbox } from "./plugin-processes.ts";
import { reason } from "./reason.ts";
import { recordsComeFirst } from "./unknown-ids.ts";
import type { NodeView } from "./view.ts";

/** A sandbox whose creation is in flight: it holds its name, and the runtime does not list it yet. */
export interface Creation {
  readonly id: SandboxId;
  readonly ageMs: number;
  /** The plugin that it waits for, if any. */
  readonly plugin?: PluginProcess;
  /** The pod's reserved name, if a log names this sandbox as its holder. */
  readonly lockedName?: string;
}

export function creationsUnderWay(view: NodeView): readonly Creation[] {
  if (view.snapshot.cri.status !== "read") return [];
  const plugins = valueOr(view.snapshot.processes, undefined)?.plugins ?? [];
  const locks = namesHeldInLogs(view);
  const locked = (id: SandboxId): Pick<Creation, "lockedName"> => {
    const lockedName = locks.get(id);
    return lockedName === undefined ? {} : { lockedName };
  };
  const inPlugin = oldestOfEachSandbox(plugins, "ADD")
    .filter(({ sandboxId }) => isInFlight(sandboxId, true, view))
    .map((plugin) => ({ id: plugin.sandboxId, ageMs: plugin.ageSeconds * 1000, plugin, ...locked(plugin.sandboxId) }));
  const seen = new Set<SandboxId>(inPlugin.map(({ id }) => id));
  // No plugin process, but the runtime reports it as a holder: the creation hangs in another step.
  const elsewhere = [...locks.keys()]
    .filter((id) => !seen.has(id) && isInFlight(id, false, view))
    .map((id) => ({ id, ageMs: ageOfRecord(id, view), ...locked(id) }));
  return [...inPlugin, ...elsewhere];
}

const CREATION_IN_FLIGHT = reason("creation-in-flight", "its creation is under way, and not yet for too long");

/**
 * Creations that may still end on their own: kubelet waits for four minutes, and the runtime's rollback takes one more.
 */
export function keptWhileCreated(view: NodeView): readonly Kept[] {
  return creationsUnderWay(view).flatMap((creation) => {
    const { id } = creation;
    const pod = parseSandboxName(view.about(id).metadata?.name ?? "");
    if (pod === undefined || isCreationDue(creation, view)) return [];
    return [{ sandboxId: id, pod, reason: CREATION_IN_FLIGHT }];
  });
}

function isInFlight(id: SandboxId, pluginRuns: boolean, view: NodeView): boolean {
  const { sandbox, record, storeRecord } = view.about(id);
  const recorded = record !== undefined || storeRecord !== undefined;
  // A daemon started by a plugin keeps the environment of that call forever, and blocks nothing.
  if (!recorded && recordsComeFirst(view)) return false;
  return holderOf({ listed: sandbox?.state, recorded, pluginRuns }) === "in-flight";
}

function ageOfRecord(id: SandboxId, view: NodeView): number {
  const { record, storeRecord } = view.about(id);
  const createdAt = record?.createdAt ?? storeRecord?.createdAt;
  return createdAt === undefined ? 0 : view.snapshot.observedAt.getTime() - createdAt.getTime();
}

/** What is known about Y when the runtime reports that a name is reserved for Y. */
export interface HolderFacts {
  readonly listed: SandboxState | undefined;
  readonly recorded: boolean;
  /** A CNI plugin process has this id in its environment. */
  readonly pluginRuns: boolean;
}

/**
 * - `live`: the sandbox is Ready; kubelet's view is wrong. Never remove it.
 * - `ghost`: listed and dead; it can be stopped and removed through the runtime.
 * - `in-flight`: its creation has not ended; there is nothing to remove, only a process to end or to wait for.
 * - `memory-only`: neither listed nor recorded: in flight before its first write, or leaked inside the runtime, which
 *   only a restart of the runtime clears.
 */
export type Holder = "live" | "ghost" | "in-flight" | "memory-only";

/** Classifies the holder Y of "name X is reserved for Y". */
export function holderOf({ listed, recorded, pluginRuns }: HolderFacts): Holder {
  if (listed === "ready") return "live";
  if (listed === "notReady") return "ghost";
  if (recorded || pluginRuns) return "in-flight";
  return "memory-only";
}

/** Sandboxes whose creation failed without a rollback since the runtime started. */
export function incompleteSandboxes(candidates: readonly Candidate[], view: NodeView): readonly Candidate[] {
  return candidates.filter(({ sandbox, about }) => wasNeverCreated(sandbox) && !wasRecovered(about, view));
}

/** If the node's network is at fault, incomplete sandboxes are a consequence and not findings. */
export function heldUpInWords({ pod, id }: Sandbox): string {
  return `pod ${pod.namespace}/${pod.name}: its half-made sandbox ${id} cannot be removed before this is repaired`;
}
