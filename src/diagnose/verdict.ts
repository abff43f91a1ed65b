import { classById } from "../classes/index.ts";
import type { Finding, Verdict } from "../evidence/finding.ts";
import { isCreation, isFailing, type Pending, type PodCreation } from "../evidence/pending.ts";
import { deletionOf } from "../evidence/pod-presence.ts";
import { callReports } from "../evidence/reports.ts";
import { creationProgress, lastCreated } from "../evidence/sandbox-creations.ts";
import type { DiagnosisPolicy, NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { RuntimeCondition } from "../node/types/runtime.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

export function verdictOf(
  { snapshot, policy }: Pick<NodeView, "snapshot" | "policy">,
  findings: readonly Finding[],
  pending: readonly Pending[],
): Verdict {
  if (findings.length > 0) return "ghosts";
  // Only Status hangs: no other error is reported, and its answer is unknown.
  if (pending.some((one) => isFailing(one) && one.reason !== "runtime-status-hanging")) return "degraded";
  const isEndUnread = valueOr(snapshot.cri, undefined)?.containers.some(({ endUnread }) => endUnread) === true;
  const isSourceUnread = unreadSources(snapshot).length > 0;
  const isTaskUnread =
    valueOr(snapshot.containerd, undefined)?.tasks.some(({ status }) => status === "unanswered") === true;
  const isStatusUnread = pending.some(({ reason }) => reason === "runtime-status-hanging");
  const isApiUnread = policy.needsApi === true && snapshot.kubernetes.source !== "api";
  const isUnread = isEndUnread || isTaskUnread || isSourceUnread || isStatusUnread || isApiUnread;
  return isUnread || unreadClasses(snapshot, policy).length > 0 ? "unknown" : "healthy";
}

/** Why the sources could not be read without which no sandbox is known to be dead, or alive. */
export function unreadSources({ cni, ...snapshot }: Snapshot): readonly string[] {
  const decisive = [snapshot.boot, snapshot.cri, snapshot.containerd, snapshot.netns, snapshot.processes];
  const files = [cni.results, cni.multus, cni.flannel, cni.hostLocal];
  return [...decisive, ...files].flatMap((source) => (source.status === "failed" ? [source.error.message] : []));
}

/** Why a class that was asked for by name could not be judged. */
export interface UnreadClass {
  readonly id: string;
  readonly why: string;
  /** Where it would be seen. */
  readonly in: "kubernetes" | "logs";
}

/** The classes of --only that this snapshot cannot show. Without --only each of them is one of many, and a problem is enough. */
export function unreadClasses(snapshot: Snapshot, { only }: Pick<DiagnosisPolicy, "only">): readonly UnreadClass[] {
  return only.flatMap((id): readonly UnreadClass[] => {
    const failureClass = classById(id);
    if (failureClass === undefined) return [];
    const { inSnapshot, unread } = failureClass;
    if ("why" in inSnapshot) return [{ id, why: `no scan can show it. ${inSnapshot.why}`, in: "logs" }];
    const why = unread?.(snapshot);
    return why === undefined ? [] : [{ id, why, in: "kubernetes" }];
  });
}

/** Can this node create a pod? Answered from the last creation, the last failure, what is pending and what was found. */
export function podCreationOn(
  view: NodeView,
  pending: readonly Pending[],
  findings: readonly Pick<Finding, "class">[],
): PodCreation {
  const last = { ...lastSuccess(view), ...lastFailed(view) };
  const blocked = pending.filter((one) => isFailing(one) && isCreation(one) && one.pod);
  return {
    // A volume is no trouble of this node's.
    able: isAble(view, { blocked: blocked.filter(({ reason }) => reason !== "creation-held"), findings, last }),
    ...last,
    blockedPods: blocked.flatMap(({ pod }) => (pod === undefined || deletionOf(pod, view) !== undefined ? [] : [pod])),
  };
}

interface Known {
  readonly blocked: readonly Pending[];
  readonly findings: readonly Pick<Finding, "class">[];
  readonly last: Pick<PodCreation, "lastSuccess" | "lastFailure">;
}

function isAble(view: NodeView, { blocked, findings, last }: Known): PodCreation["able"] {
  const cri = valueOr(view.snapshot.cri, undefined);
  if (cri === undefined) return "unknown";
  if (cri.statusHangsMs !== undefined || cri.conditions.some(isDown)) return "no";
  const progress = creationProgress(view);
  const isBlocked = findings.some((finding) => classById(finding.class)?.blocksEveryCall === true);
  if (progress === "stalled" || isBlocked) return "no";
  const { lastSuccess: success, lastFailure: failure } = last;
  const failedAt = failure?.at?.getTime() ?? Number.POSITIVE_INFINITY;
  if (blocked.length > 0 && !(success !== undefined && success.at.getTime() > failedAt)) {
    // One pod whose name is reserved is no evidence about the others.
    const isOwnTrouble = blocked.length === 1 && blocked[0]?.reported.every(({ code }) => code === "name-reserved");
    return isOwnTrouble === true ? "unknown" : "no";
  }
  return progress === "slow" ? "unknown" : "yes";
}

function isDown({ type, status }: RuntimeCondition): boolean {
  return (type === "NetworkReady" || type === "RuntimeReady") && !status;
}

function lastSuccess(view: NodeView): Pick<PodCreation, "lastSuccess"> {
  const newest = lastCreated(view);
  if (newest === undefined) return {};
  return { lastSuccess: { at: new Date(Number(newest.createdAt / 1_000_000n)), pod: newest.pod } };
}

function lastFailed(view: NodeView): Pick<PodCreation, "lastFailure"> {
  const last = callReports(view).findLast(({ operation, code }) => operation === "create" && code !== "volume");
  if (last === undefined) return {};
  const { at, code, pod, message } = last;
  return { lastFailure: { at, code, pod, message } };
}
