import { isSamePod, type NamedPod, parseSandboxName } from "../node/types/ids.ts";
import type { ReportedCode } from "./pending.ts";
import { type CallReport, callReports } from "./reports.ts";
import type { Creation } from "./sandbox-creations.ts";
import type { NodeView } from "./view.ts";

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
  if (named !== undefined) return named;
  if (plugin?.pod === undefined) return undefined;
  const { namespace, name, uid } = plugin.pod;
  return { namespace, name, uid };
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
