import { valueOr } from "../host/source.ts";
import { isSamePod, type NamedPod, parseSandboxName, type SandboxId } from "../node/types/ids.ts";
import type { PluginProcess, Sandbox } from "../node/types/runtime.ts";
import type { Candidate } from "./candidates.ts";
import { wasNeverCreated, wasRecovered } from "./ending.ts";
import { type Kept, reason } from "./finding.ts";
import { namesHeldInLogs, oldestOfEachSandbox } from "./locks.ts";
import { hasOutlivedRuntime } from "./outlived-plugins.ts";
import type { ReportedCode } from "./pending.ts";
import { type CallReport, callReports } from "./reports.ts";
import { recordsComeFirst } from "./unknown-ids.ts";
import { isRecorded, type NodeView } from "./view.ts";

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
  const inPlugin = oldestOfEachSandbox(plugins, "ADD")
    .filter((plugin) => !hasOutlivedRuntime(plugin, view) && isInFlight(plugin.sandboxId, true, view))
    .map((plugin) => {
      const { sandboxId: id, ageSeconds } = plugin;
      return { id, ageMs: ageSeconds * 1000, plugin, lockedName: locks.get(id) };
    });
  const seen = new Set<SandboxId>(inPlugin.map(({ id }) => id));
  // No plugin process, but the runtime reports it as a holder: the creation hangs in another step.
  const elsewhere = [...locks.keys()]
    .filter((id) => !seen.has(id) && isInFlight(id, false, view))
    .map((id) => ({ id, ageMs: ageOfRecord(id, view), lockedName: locks.get(id) }));
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
  const about = view.about(id);
  const recorded = isRecorded(about);
  // A daemon started by a plugin keeps the environment of that call forever, and blocks nothing.
  if (!recorded && recordsComeFirst(view)) return false;
  return about.sandbox === undefined && (recorded || pluginRuns);
}

function ageOfRecord(id: SandboxId, view: NodeView): number {
  const { record, storeRecord } = view.about(id);
  const createdAt = record?.createdAt ?? storeRecord?.createdAt;
  return createdAt === undefined ? 0 : view.snapshot.observedAt.getTime() - createdAt.getTime();
}

/** Sandboxes whose creation failed without a rollback since the runtime started. */
export function incompleteSandboxes(candidates: readonly Candidate[], view: NodeView): readonly Candidate[] {
  return candidates.filter(({ sandbox, about }) => wasNeverCreated(sandbox) && !wasRecovered(about, view));
}

/** If the node's network is at fault, incomplete sandboxes are a consequence and not findings. */
export function heldUpInWords({ pod, id }: Sandbox): string {
  return `pod ${pod.namespace}/${pod.name}: its half-made sandbox ${id} cannot be removed before this is repaired`;
}

/**
 * How long a creation may continue after its caller timed out. Kubelet times out RunPodSandbox after twice its
 * runtimeRequestTimeout (4 minutes by default) and retries within 10 to 15 seconds. The runtime kills the plugin when
 * the caller's deadline passes: a plugin that still runs after two refused retries will not end on its own, and no
 * caller waits for its result.
 */
const ABANDONED_GRACE_MS = 30_000;

/** A plugin of a new attempt gets this time, however long its pod has waited. */
const FRESH_PLUGIN_MS = 60_000;

/** An attempt that timed out, or was refused because an earlier one is still in flight. */
const TOO_SLOW: ReadonlySet<ReportedCode> = new Set(["deadline-exceeded", "canceled", "name-reserved"]);

/** The pod whose sandbox is being created, if known. */
export function podOfCreation({ id, plugin, lockedName }: Creation, view: NodeView): NamedPod | undefined {
  const named = parseSandboxName(lockedName ?? view.about(id).metadata?.name ?? "");
  return named ?? plugin?.pod;
}

/** When a creation in flight counts as stuck, in milliseconds since 1970. */
export function creationDueAt(creation: Creation, view: NodeView): number {
  const { inflightGraceMs, abandonedGraceMs = Math.min(inflightGraceMs, ABANDONED_GRACE_MS) } = view.policy;
  const startedAt = view.snapshot.observedAt.getTime() - creation.ageMs;
  // Kubelet creates a pod's sandboxes sequentially: a reported failure ends its wait, whatever the reason.
  const reported = reportsOfAttempt(creation, view).flatMap(({ at }) => (at === undefined ? [] : [at.getTime()]));
  const abandonedAt = Math.min(...reported);
  const waitingSince = podWaitingSince(creation, view) ?? startedAt;
  return Math.min(
    startedAt + inflightGraceMs,
    Math.max(startedAt, abandonedAt) + abandonedGraceMs,
    // If the plugin obeys, kubelet ends each attempt at its deadline: then the pod's total waiting time counts, not
    // that of the last attempt.
    Math.max(waitingSince + inflightGraceMs, startedAt + Math.min(inflightGraceMs, FRESH_PLUGIN_MS)),
  );
}

export function isCreationDue(creation: Creation, view: NodeView): boolean {
  return creationDueAt(creation, view) <= view.snapshot.observedAt.getTime();
}

/** The newest sandbox whose creation succeeded, apart from those of the host's network: they need no plugin. */
export function lastCreated(view: NodeView): Sandbox | undefined {
  return view.sandboxes
    .filter((sandbox) => !wasNeverCreated(sandbox) && view.about(sandbox.id).metadata?.hostNetwork !== true)
    .toSorted((one, other) => Number(other.createdAt - one.createdAt))[0];
}

/** One creation may wait for a reason of its own. */
const FEWEST_STALLED = 2;
/** A creation takes seconds; under load several of them may take longer at the same time. */
const SLOW_MS = 15_000;
const STALLED_MS = 60_000;
/** After a boot the network's own pods have to start first. */
const START_SECONDS = 120;

/**
 * `slow`: several creations wait, and none has succeeded since the first of them started. `stalled`: they have waited
 * for a minute, and not because the node has just started.
 */
export function creationProgress(view: NodeView): "normal" | "slow" | "stalled" {
  const waiting = creationsUnderWay(view).filter(({ ageMs }) => ageMs >= SLOW_MS);
  if (waiting.length < FEWEST_STALLED) return "normal";
  const startedAt = view.snapshot.observedAt.getTime() - Math.max(...waiting.map(({ ageMs }) => ageMs));
  const created = lastCreated(view);
  if (created !== undefined && created.createdAt > BigInt(Math.floor(startedAt)) * 1_000_000n) return "normal";
  const isStarting = view.runtimeUpSeconds !== undefined && view.runtimeUpSeconds < START_SECONDS;
  const old = waiting.filter(({ ageMs }) => ageMs >= STALLED_MS);
  return old.length < FEWEST_STALLED || isStarting ? "slow" : "stalled";
}

/** Reports about this sandbox by id, and about its pod since this attempt started. */
export function reportsOfAttempt(creation: Creation, view: NodeView): readonly CallReport[] {
  const pod = podOfCreation(creation, view);
  const startedAt = view.snapshot.observedAt.getTime() - creation.ageMs;
  return callReports(view).filter((report) => {
    if (report.operation !== "create" || report.code === "volume") return false;
    if (report.sandboxId === creation.id) return true;
    if (pod === undefined || !isSamePod(report.pod, pod)) return false;
    if (report.pod?.attempt !== undefined && pod.attempt !== undefined && report.pod.attempt !== pod.attempt)
      return false;
    return report.at !== undefined && report.at.getTime() >= startedAt;
  });
}

/** Consecutive attempts of one pod are separated by at most kubelet's four minutes and its back-off. */
const LONGEST_GAP_MS = 6 * 60_000;

/** Start of the series of failed attempts of this pod without a success in between. */
function podWaitingSince(creation: Creation, view: NodeView): number | undefined {
  const pod = podOfCreation(creation, view);
  if (pod?.uid === undefined) return undefined;
  let since = view.snapshot.observedAt.getTime();
  for (const report of callReports(view).toReversed()) {
    if (report.operation !== "create" || !TOO_SLOW.has(report.code) || report.at === undefined) continue;
    if (!isSamePod(report.pod, pod)) continue;
    const at = report.at.getTime();
    if (since - at > LONGEST_GAP_MS) break;
    since = Math.min(since, at);
  }
  return since === view.snapshot.observedAt.getTime() ? undefined : since;
}
