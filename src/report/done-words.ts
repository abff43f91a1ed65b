import type { Step } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

import { count } from "./text.ts";

/** What a healed action did, for events and records. */
export function doneInWords(
  { steps, followUps = [] }: Pick<PlannedAction, "steps" | "followUps">,
  undone: readonly Step[] = [],
): string {
  const removal = steps.findIndex(({ kind }) => kind === "remove-sandbox");
  // The steps after a removal only verify that nothing is left.
  const decisive = removal < 0 ? steps : steps.slice(0, removal + 1);
  const done = [...decisive, ...followUps].flatMap((step) => (undone.includes(step) ? [] : (pastOf(step) ?? [])));
  return done.length === 0 ? "healed without a change" : [...new Set(done)].join(", ");
}

/** Undefined for steps that only wait or clean up. */
function pastOf(step: Step): string | undefined {
  switch (step.kind) {
    case "quarantine-file":
      return "moved its broken or stale cache file to quarantine";
    case "stop-sandbox":
      return "stopped the sandbox";
    case "remove-sandbox":
      return "removed the sandbox";
    case "multus-marker":
      return "made multus' DEL safe for it";
    case "end-process":
      return "ended the hung process";
    case "free-cni-lock":
      return "ended the process that held the CNI lock";
    case "restart-daemon":
      return "restarted the daemon's container";
    case "drop-empty-lease":
      return "moved the ownerless address file to quarantine";
    case "remove-netns":
      return "removed the network namespace";
    case "replay-del":
      return "called CNI DEL from its cached record";
    case "delete-lease":
      return "deleted the containerd lease";
    case "kick-pod":
      return `restarted ${step.namespace}/${step.name}`;
    case "release-addresses":
      return `released ${count(step.leases.length, "IP address", "IP addresses")}`;
    case "await-kubelet":
    case "await-socket":
      return undefined;
  }
}
