import type { NamedPod } from "../node/types/ids.ts";
import { type Finding, podOf } from "./finding.ts";
import { deletionOf } from "./pod-presence.ts";
import { distinctPods, podsInWords } from "./reports.ts";
import type { NodeView } from "./view.ts";

/** The pods that a cause keeps from starting, and those whose deletion it holds up. Pods that are gone are left out. */
export function affectedPods(
  pods: readonly NamedPod[],
  view: NodeView,
): Required<Pick<Finding, "blocks" | "blockedPods" | "terminatingPods">> {
  const { blockedPods, terminatingPods } = byDeletion(distinctPods(pods), view);
  return {
    blocks: [
      ...(blockedPods.length === 0 ? [] : [podsInWords(blockedPods)]),
      ...(terminatingPods.length === 0 ? [] : [`the deletion of ${podsInWords(terminatingPods)}`]),
    ],
    blockedPods,
    terminatingPods,
  };
}

/** A finding about a sandbox lists the sandbox's pod, whether or not somebody still waits for it. */
export function withoutDeletedPods(finding: Finding, view: NodeView): Finding {
  if (finding.blockedPods === undefined) return finding;
  const own = podOf(finding.subject);
  const listed = finding.blockedPods.map((pod) =>
    own?.namespace === pod.namespace && own.name === pod.name ? { ...pod, uid: own.uid } : pod,
  );
  const { blockedPods, terminatingPods } = byDeletion(listed, view);
  if (blockedPods.length === listed.length) return finding;
  const kept = finding.blockedPods.filter((_, index) => blockedPods.some((pod) => pod === listed[index]));
  return { ...finding, blockedPods: kept, terminatingPods: [...(finding.terminatingPods ?? []), ...terminatingPods] };
}

function byDeletion(pods: readonly NamedPod[], view: NodeView) {
  const blockedPods = pods.filter((pod) => deletionOf(pod, view) === undefined);
  return { blockedPods, terminatingPods: pods.filter((pod) => deletionOf(pod, view) === "terminating") };
}
