import type { Step } from "../evidence/step.ts";
import type { PlannedAction } from "../plan/plan.ts";

type Disruption = "always" | "in-bulk" | "never";

/** What a step does to anybody else than the dead sandbox that it is about. */
const DISRUPTION: Readonly<Record<Step["kind"], Disruption>> = {
  // A running process is ended, and the callers that wait for it fail.
  "end-process": "always",
  "free-cni-lock": "always",
  // A pod is restarted, and with it what it serves.
  "restart-daemon": "always",
  "kick-pod": "always",
  // The attacher goes to work on a volume of the whole cluster.
  "delete-volume-attachment": "always",
  // Each calls the network's plugins, many of which ask the API server and their address manager; and each lets kubelet
  // start a pod again. A few are an ordinary minute of a node, dozens on every node at once are a storm.
  "stop-sandbox": "in-bulk",
  "remove-sandbox": "in-bulk",
  "release-addresses": "in-bulk",
  "replay-del": "in-bulk",
  // A file, a namespace or a record of something dead, on this node alone.
  "quarantine-file": "never",
  "multus-marker": "never",
  "drop-empty-lease": "never",
  "remove-netns": "never",
  "delete-lease": "never",
  // Waits, and touches nothing.
  "await-kubelet": "never",
  "await-socket": "never",
};

/** What a kubelet itself may do in a minute without anybody noticing. */
const A_FEW = 5;

export interface Sorted {
  /** These need a slot. */
  readonly disruptive: readonly PlannedAction[];
  readonly harmless: readonly PlannedAction[];
}

export function byDisruption(actions: readonly PlannedAction[]): Sorted {
  const heavy = actions.filter((action) => hasStep(action, "in-bulk"));
  const isBulk = heavy.length > A_FEW;
  const isDisruptive = (action: PlannedAction): boolean =>
    hasStep(action, "always") || (isBulk && hasStep(action, "in-bulk"));
  return {
    disruptive: actions.filter(isDisruptive),
    harmless: actions.filter((action) => !isDisruptive(action)),
  };
}

function hasStep({ steps, followUps = [] }: PlannedAction, disruption: Disruption): boolean {
  return [...steps, ...followUps].some(({ kind }) => DISRUPTION[kind] === disruption);
}
