import { cniLockState, LOCK_GRACE_MS, oldestOfEachSandbox } from "../evidence/locks.ts";
import type { Pending, Reported, WaitsFor } from "../evidence/pending.ts";
import { isKubeletAlive } from "../evidence/pod-presence.ts";
import { type CallReport, callReports, isFresh, removalReports } from "../evidence/reports.ts";
import {
  creationDueAt,
  creationProgress,
  creationsUnderWay,
  isCreationDue,
  podOfCreation,
  reportsOfAttempt,
} from "../evidence/sandbox-creations.ts";
import type { NodeView } from "../evidence/view.ts";
import { isDead, usersOf } from "../evidence/volumes.ts";
import { valueOr } from "../host/source.ts";
import { isSamePod, type NamedPod } from "../node/types/ids.ts";
import type { PluginProcess } from "../node/types/runtime.ts";

/** What is in flight and not a finding; `explained` are the sandboxes that a finding already covers. */
export function pendingOn(view: NodeView, explained: ReadonlySet<string>): readonly Pending[] {
  const creations = [...heldByVolumes(view), ...pendingCreations(view)];
  const removals = pendingRemovals(view);
  const failing = failingCreations(view, [...creations, ...removals]);
  return [...hangingStatus(view), ...creations, ...removals, ...failing].filter(
    ({ sandboxId }) => sandboxId === undefined || !explained.has(sandboxId),
  );
}

/** Not yet a finding: the plugins that hold the lock may be only slow, or there are none. */
function hangingStatus(view: NodeView): readonly Pending[] {
  const lock = cniLockState(view);
  if (lock === undefined) return [];
  const { observedAt } = view.snapshot;
  const [oldest] = lock.holders;
  const graceMs = Math.min(view.policy.inflightGraceMs, LOCK_GRACE_MS);
  if (oldest === undefined) {
    const since = new Date(observedAt.getTime() - lock.statusHangsMs);
    return [{ reason: "runtime-status-hanging", since, waitsFor: { kind: "runtime" }, reported: [] }];
  }
  const ageMs = oldest.ageSeconds * 1000;
  if (ageMs >= graceMs) return [];
  const since = new Date(observedAt.getTime() - ageMs);
  const { pid, command } = oldest;
  return [
    {
      reason: "runtime-status-hanging",
      since,
      waitsFor: { kind: "lock", holder: { pid, command } },
      reported: [],
      becomesFindingAt: new Date(since.getTime() + graceMs),
    },
  ];
}

/** Not yet a finding: the controller detaches a volume from a dead node after some minutes. */
function heldByVolumes({ snapshot: { kubernetes, observedAt }, policy }: NodeView): readonly Pending[] {
  if (kubernetes.source !== "api") return [];
  return (kubernetes.unattached ?? []).flatMap((attachment) => {
    const dead = attachment.holders.find(isDead);
    if (dead === undefined) return [];
    const what = dead.state?.kind === "gone" ? "is gone" : "is not Ready";
    const message = `${attachment.volume ?? "it"} is attached to ${dead.node}, which ${what}`;
    return usersOf(attachment, kubernetes.pods).flatMap(({ namespace = "", name = "", uid, phase, waitingSince }) => {
      const since = waitingSince ?? observedAt;
      const becomesFindingAt = new Date(since.getTime() + policy.volumeAttachmentAgeMs);
      if (phase !== "Pending" || becomesFindingAt <= observedAt) return [];
      const waitsFor = { kind: "volume", message } as const;
      return [
        { reason: "creation-held", pod: { namespace, name, uid }, since, waitsFor, reported: [], becomesFindingAt },
      ];
    });
  });
}

/**
 * Kubelet's timeout for StopPodSandbox is its runtimeRequestTimeout, 2 minutes by default; for RunPodSandbox it is
 * twice as long.
 */
const STOP_TIMEOUT_MS = 120_000;
const RUN_TIMEOUT_MS = 2 * STOP_TIMEOUT_MS;

function pendingCreations(view: NodeView): readonly Pending[] {
  const isStalled = creationProgress(view) === "stalled";
  return creationsUnderWay(view).flatMap((creation): readonly Pending[] => {
    if (isCreationDue(creation, view)) return [];
    const pod = podOfCreation(creation, view);
    const reports = reportsOfAttempt(creation, view);
    const earlier = pod === undefined ? [] : freshReports("create", pod, view);
    const reported = [...new Set([...reports, ...earlier])];
    return [
      {
        reason: creationReason(reported.length > 0, isStalled, creation.ageMs),
        pod,
        sandboxId: creation.id,
        since: new Date(view.snapshot.observedAt.getTime() - creation.ageMs),
        waitsFor: creation.plugin && plugin(creation.plugin),
        reported: newest(reported),
        becomesFindingAt: new Date(creationDueAt(creation, view)),
      },
    ];
  });
}

function creationReason(isReported: boolean, isStalled: boolean, ageMs: number): Pending["reason"] {
  if (isReported) return "creation-retrying";
  if (ageMs > RUN_TIMEOUT_MS) return "creation-overdue";
  return isStalled ? "creation-stalled" : "creation-in-flight";
}

function removalReason(isReported: boolean, ageMs: number): Pending["reason"] {
  if (isReported) return "removal-failing";
  return ageMs > STOP_TIMEOUT_MS ? "removal-overdue" : "removal-in-flight";
}

function pendingRemovals(view: NodeView): readonly Pending[] {
  const plugins = oldestOfEachSandbox(valueOr(view.snapshot.processes, undefined)?.plugins ?? [], "DEL");
  const byId = new Map(plugins.map((one) => [one.sandboxId as string, one]));
  return view.sandboxes.flatMap((sandbox): readonly Pending[] => {
    const del = byId.get(sandbox.id);
    const reported = removalReports(sandbox, view);
    if (del === undefined && reported.length === 0) return [];
    const { observedAt } = view.snapshot;
    const startedAt = del === undefined ? undefined : new Date(observedAt.getTime() - del.ageSeconds * 1000);
    return [
      {
        reason: removalReason(reported.length > 0, (del?.ageSeconds ?? 0) * 1000),
        pod: sandbox.pod,
        sandboxId: sandbox.id,
        since: earliest([startedAt, ...reported.map(({ at }) => at)]) ?? observedAt,
        waitsFor: del === undefined ? undefined : plugin(del),
        reported: newest(reported),
        becomesFindingAt: startedAt && new Date(startedAt.getTime() + view.policy.inflightGraceMs),
      },
    ];
  });
}

/** Pods whose last attempt failed and that have neither a sandbox nor an attempt in flight. */
function failingCreations(view: NodeView, known: readonly Pending[]): readonly Pending[] {
  const pods = new Map<string, NamedPod>();
  for (const report of callReports(view)) {
    if (report.operation !== "create" || report.by === "runtime" || report.pod === undefined) continue;
    if (!isFresh(report, view)) continue;
    const pod = wantedPod(report.pod, view);
    if (pod !== undefined) pods.set(`${pod.namespace}/${pod.name}`, pod);
  }
  return [...pods.values()].flatMap((pod): readonly Pending[] => {
    if (hasReadySandbox(pod, view) || known.some((one) => isSamePod(one.pod, pod))) return [];
    const reported = freshReports("create", pod, view);
    const isVolume = reported.every(({ code }) => code === "volume");
    const firstReported = earliest(reported.map(({ at }) => at)) ?? view.snapshot.observedAt;
    return [
      {
        reason: isVolume ? "creation-waiting" : "creation-failing",
        pod,
        since: (isVolume ? waitsSince(pod, view) : undefined) ?? firstReported,
        ...(isVolume ? { waitsFor: { kind: "volume", message: reported.at(-1)?.message ?? "" } } : {}),
        reported: newest(reported),
      },
    ];
  });
}

/** An event about a volume has only the time of its last repetition. */
function waitsSince(pod: NamedPod, { snapshot: { kubernetes } }: NodeView): Date | undefined {
  return kubernetes.source === "api" ? kubernetes.pods.find(({ uid }) => uid === pod.uid)?.waitingSince : undefined;
}

/** The pod in Kubernetes; undefined if it is gone or being deleted. */
function wantedPod(pod: NamedPod, view: NodeView): NamedPod | undefined {
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return isKubeletAlive(view) ? pod : undefined;
  const found = kubernetes.pods.find((one) =>
    pod.uid === undefined
      ? one.namespace === pod.namespace && one.name === pod.name
      : one.uid === pod.uid || one.objectUid === pod.uid,
  );
  if (found === undefined || found.terminating === true) return undefined;
  if (found.phase === "Succeeded" || found.phase === "Failed") return undefined;
  return { ...pod, uid: found.uid };
}

function hasReadySandbox(pod: NamedPod, view: NodeView): boolean {
  return view.sandboxes.some((sandbox) => sandbox.state === "ready" && isSamePod(sandbox.pod, pod));
}

function freshReports(operation: Reported["operation"], pod: NamedPod, view: NodeView): readonly CallReport[] {
  return callReports(view).filter(
    (report) => report.operation === operation && isFresh(report, view) && isSamePod(report.pod, pod),
  );
}

function plugin({ pid, command, cniCommand }: PluginProcess): WaitsFor {
  return { kind: "plugin", pid, command, cniCommand };
}

const MAX_REPORTED = 3;

/** The last report of each kind, newest first, with its count. */
function newest(reports: readonly CallReport[]): readonly Reported[] {
  const byKind = Map.groupBy(reports, ({ by, code }) => `${by} ${code}`);
  return [...byKind.values()]
    .flatMap((group) => {
      const last = group.at(-1);
      if (last === undefined) return [];
      const { by, code, operation, at, message } = last;
      const count = group.reduce((sum, one) => sum + one.count, 0);
      return [{ by, code, operation, at, count, message }];
    })
    .toSorted((one, other) => (other.at?.getTime() ?? 0) - (one.at?.getTime() ?? 0))
    .slice(0, MAX_REPORTED);
}

function earliest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.flatMap((date) => (date === undefined ? [] : [date.getTime()]));
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
