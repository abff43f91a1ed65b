import type { Finding } from "../evidence/finding.ts";
import { isFailing, type Pending } from "../evidence/pending.ts";
import type { Verdict } from "../evidence/verdict.ts";
import { valueOr } from "../host/source.ts";
import type { Snapshot } from "../snapshot/types.ts";

export function verdictOf(snapshot: Snapshot, findings: readonly Finding[], pending: readonly Pending[]): Verdict {
  if (findings.length > 0) return "ghosts";
  // Status alone: nobody else complains, and whatever its answer would show is not known.
  if (pending.some((one) => isFailing(one) && one.reason !== "runtime-status-hanging")) return "degraded";
  const { cni } = snapshot;
  const decisive = [snapshot.boot, snapshot.cri, snapshot.containerd, snapshot.netns, snapshot.processes];
  const files = [cni.results, cni.multus, cni.flannel, cni.hostLocal];
  const isEndUnread = valueOr(snapshot.cri, undefined)?.containers.some(({ endUnread }) => endUnread) === true;
  const isSourceUnread = [...decisive, ...files].some((source) => source.status === "failed");
  const isStatusUnread = pending.some(({ reason }) => reason === "runtime-status-hanging");
  return isEndUnread || isSourceUnread || isStatusUnread ? "unknown" : "healthy";
}
