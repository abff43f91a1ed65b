import type { Finding, Verdict } from "../evidence/finding.ts";
import { isCreation, isFailing, type Pending, type PodCreation } from "../evidence/pending.ts";
import { callReports } from "../evidence/reports.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { RuntimeCondition } from "../node/types/runtime.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

export function verdictOf(snapshot: Snapshot, findings: readonly Finding[], pending: readonly Pending[]): Verdict {
  if (findings.length > 0) return "ghosts";
  // Only Status hangs: no other error is reported, and its answer is unknown.
  if (pending.some((one) => isFailing(one) && one.reason !== "runtime-status-hanging")) return "degraded";
  const { cni } = snapshot;
  const decisive = [snapshot.boot, snapshot.cri, snapshot.containerd, snapshot.netns, snapshot.processes];
  const files = [cni.results, cni.multus, cni.flannel, cni.hostLocal];
  const isEndUnread = valueOr(snapshot.cri, undefined)?.containers.some(({ endUnread }) => endUnread) === true;
  const isSourceUnread = [...decisive, ...files].some((source) => source.status === "failed");
  const isTaskUnread =
    valueOr(snapshot.containerd, undefined)?.tasks.some(({ status }) => status === "unanswered") === true;
  const isStatusUnread = pending.some(({ reason }) => reason === "runtime-status-hanging");
  return isEndUnread || isTaskUnread || isSourceUnread || isStatusUnread ? "unknown" : "healthy";
}

/** Can this node create a pod? Answered from the last creation, the last failure and what is pending. */
export function podCreationOn(view: NodeView, pending: readonly Pending[]): PodCreation {
  const last = { ...lastCreated(view), ...lastFailed(view) };
  const blocked = pending.filter((one) => isFailing(one) && isCreation(one) && one.pod);
  return {
    able: isAble(view, blocked, last),
    ...last,
    blockedPods: blocked.flatMap(({ pod }) => (pod === undefined ? [] : [pod])),
  };
}

function isAble(
  view: NodeView,
  blocked: readonly Pending[],
  { lastSuccess, lastFailure }: Pick<PodCreation, "lastSuccess" | "lastFailure">,
): PodCreation["able"] {
  const cri = valueOr(view.snapshot.cri, undefined);
  if (cri === undefined) return "unknown";
  if (cri.statusHangsMs !== undefined || cri.conditions.some(isDown)) return "no";
  if (blocked.length === 0) return "yes";
  const failedAt = lastFailure?.at?.getTime() ?? Number.POSITIVE_INFINITY;
  if (lastSuccess !== undefined && lastSuccess.at.getTime() > failedAt) return "yes";
  // One pod whose name is reserved is no evidence about the others.
  const isOwnTrouble = blocked.length === 1 && blocked[0]?.reported.every(({ code }) => code === "name-reserved");
  return isOwnTrouble === true ? "unknown" : "no";
}

function isDown({ type, status }: RuntimeCondition): boolean {
  return (type === "NetworkReady" || type === "RuntimeReady") && !status;
}

function lastCreated({ sandboxes }: NodeView): Pick<PodCreation, "lastSuccess"> {
  const [newest] = sandboxes
    .filter(({ state, createdAt }) => state === "ready" && createdAt > 0n)
    .toSorted((one, other) => Number(other.createdAt - one.createdAt));
  if (newest === undefined) return {};
  return { lastSuccess: { at: new Date(Number(newest.createdAt / 1_000_000n)), pod: newest.pod } };
}

function lastFailed(view: NodeView): Pick<PodCreation, "lastFailure"> {
  const last = callReports(view).findLast(({ operation, code }) => operation === "create" && code !== "volume");
  if (last === undefined) return {};
  const { at, code, pod, message } = last;
  return { lastFailure: { at, code, pod, message } };
}
