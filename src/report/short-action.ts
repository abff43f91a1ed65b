import type { Step } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

type Steps = Pick<PlannedAction, "steps" | "followUps">;

/** An action in a table cell: `quarantine, remove`. Steps that only wait or clean up are left out. */
export function shortAction(action: Steps): string {
  return decisiveWords(action, 0) || "wait";
}

/** The same for an ended action, without the steps that were not needed: `quarantined, removed`. */
export function shortDone(action: Steps, undone: readonly Step[] = []): string {
  const done = decisiveWords(action, 1, undone);
  if (done !== "") return done;
  const leftToKubelet = action.steps.some((step) => step.kind === "await-kubelet" && !undone.includes(step));
  return leftToKubelet ? "finished by kubelet" : "no change";
}

function decisiveWords({ steps, followUps = [] }: Steps, tense: 0 | 1, without: readonly Step[] = []): string {
  const removal = steps.findIndex(({ kind }) => kind === "remove-sandbox");
  // The steps after a removal only verify that nothing is left.
  const decisive = removal < 0 ? steps : steps.slice(0, removal + 1);
  const words = [...decisive, ...followUps].flatMap((step) =>
    without.includes(step) ? [] : (WORDS[step.kind]?.[tense] ?? []),
  );
  return [...new Set(words)].join(", ");
}

const WORDS: Readonly<Record<Step["kind"], readonly [plan: string, done: string] | undefined>> = {
  "quarantine-file": ["quarantine", "quarantined"],
  "drop-empty-lease": ["quarantine", "quarantined"],
  "stop-sandbox": ["stop", "stopped"],
  "remove-sandbox": ["remove", "removed"],
  "multus-marker": ["make DEL safe", "DEL made safe"],
  "end-process": ["end process", "process ended"],
  "free-cni-lock": ["free CNI lock", "CNI lock freed"],
  "release-addresses": ["release IPs", "IPs released"],
  "replay-del": ["CNI DEL", "CNI DEL called"],
  "remove-netns": ["remove netns", "netns removed"],
  "delete-lease": ["delete lease", "lease deleted"],
  "kick-pod": ["restart pod", "pod restarted"],
  "restart-daemon": ["restart daemon", "daemon restarted"],
  "await-kubelet": undefined,
  "await-socket": undefined,
};
