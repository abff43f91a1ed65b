import type { Step } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

/** What an action comes to, in a table cell: `quarantine, remove`. Steps that only wait or clean up are left out. */
export function shortAction({ steps, followUps = [] }: Pick<PlannedAction, "steps" | "followUps">): string {
  const removal = steps.findIndex(({ kind }) => kind === "remove-sandbox");
  // What follows a removal only verifies that nothing is left behind.
  const decisive = removal < 0 ? steps : steps.slice(0, removal + 1);
  const words = [...decisive, ...followUps].flatMap((step) => WORDS[step.kind] ?? []);
  return [...new Set(words)].join(", ") || "wait";
}

const WORDS: Readonly<Record<Step["kind"], string | undefined>> = {
  "quarantine-file": "quarantine",
  "drop-empty-lease": "quarantine",
  "stop-sandbox": "stop",
  "remove-sandbox": "remove",
  "multus-marker": undefined,
  "end-process": "end process",
  "free-cni-lock": "free CNI lock",
  "release-addresses": "release IPs",
  "replay-del": "CNI DEL",
  "remove-netns": "remove netns",
  "delete-lease": "delete lease",
  "delete-volume-attachment": "delete attachment",
  "kick-pod": "restart pod",
  "restart-daemon": "restart daemon",
  "await-kubelet": undefined,
  "await-socket": undefined,
};
