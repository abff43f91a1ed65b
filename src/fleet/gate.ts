import type { Step } from "../evidence/step.ts";
import { KubeError, type KubeErrorKind, orKubeError } from "../kube/kube-error.ts";
import type { OpenCluster } from "../kube/open-cluster.ts";
import type { PlannedAction } from "../plan/plan.ts";
import type { BreakerState } from "./breaker.ts";
import { openBreaker } from "./breaker-watch.ts";
import type { FleetPolicy } from "./fleet-policy.ts";
import { openSlots, type SlotAnswer } from "./slots.ts";
import type { Timing } from "./timing.ts";
import { withApi } from "./with-api.ts";

export interface FleetGateOptions {
  readonly openCluster: OpenCluster;
  readonly policy: () => FleetPolicy;
  /** What the cluster calls this node. */
  readonly node: () => string;
  readonly timing: Timing;
  readonly warn: (message: string, detail: string) => void;
  /** The breaker has opened, or closed again. */
  readonly onBreaker: (state: BreakerState) => void;
}

export type FleetAnswer =
  /** `release` must be called when the healing has ended; it never throws. */
  | { readonly kind: "go"; release(): Promise<void> }
  | {
      readonly kind: "wait";
      readonly reason: "breaker" | "slots";
      readonly message: string;
      /** What may be done all the same, since it disrupts no pod. */
      readonly meanwhile: readonly PlannedAction[];
    };

/** Whether this node may act now, as far as the others are concerned. */
export interface FleetGate {
  ask(actions: readonly PlannedAction[]): Promise<FleetAnswer>;
  breaker(): BreakerState;
  close(): Promise<void>;
}

/** All that a healing waits for the API, whatever that is doing. */
const ASK_MS = 2000;
/** After the API failed it is left alone for this long, and healing does not wait for it at all. */
const LEAVE_ALONE_MS = 30_000;

const GO: FleetAnswer = { kind: "go", release: () => Promise.resolve() };

/**
 * Fails open: an API that is down, refuses or hangs never keeps a node from healing itself. Only a breaker that was
 * found open holds on for a while, for the API may be down for the same reason.
 */
export function openFleetGate({ openCluster, policy, node, timing, warn, onBreaker }: FleetGateOptions): FleetGate {
  const breaker = openBreaker({ openCluster, policy, node, timing, onTurn: onBreaker });
  const slots = openSlots({ openCluster, node, timing, warn });
  let leftAloneUntilMs = 0;
  let lastTrouble: KubeErrorKind | undefined;

  /** Logs an error when it starts or changes, not on every call. */
  async function loggedOnce<T>(asking: Promise<T>): Promise<T | KubeError> {
    const answer = await orKubeError(asking);
    const trouble = answer instanceof KubeError ? answer.kind : undefined;
    if (answer instanceof KubeError) {
      leftAloneUntilMs = timing.clock() + LEAVE_ALONE_MS;
      if (trouble !== lastTrouble) warn("fleet limits unavailable; healing continues without them", answer.message);
    }
    lastTrouble = trouble;
    return answer;
  }

  async function takeSlot(disruptive: readonly PlannedAction[], waitMs: number): Promise<SlotAnswer | undefined> {
    if (disruptive.length === 0 || waitMs <= 0) return undefined;
    const answer = await loggedOnce(withApi(openCluster, waitMs, (api) => slots.take(api, policy())));
    return answer instanceof KubeError ? undefined : answer;
  }

  async function ask(actions: readonly PlannedAction[]): Promise<FleetAnswer> {
    if (actions.length === 0) return GO;
    const startedMs = timing.clock();
    const isLeftAlone = startedMs < leftAloneUntilMs;
    const checked = isLeftAlone ? undefined : await loggedOnce(breaker.check(ASK_MS));
    const { open, message = "" } = breaker.state();
    if (open) return { kind: "wait", reason: "breaker", message, meanwhile: [] };
    if (isLeftAlone || checked instanceof KubeError) return GO;
    const { disruptive, harmless } = byDisruption(actions);
    const slot = await takeSlot(disruptive, startedMs + ASK_MS - timing.clock());
    if (slot === undefined) return GO;
    if (slot.kind === "held") return { kind: "go", release: () => slot.slot.release() };
    const who = slot.by.join(", ") || "others were faster";
    const full = `as many nodes of the fleet as may heal at once are doing so (${who})`;
    return { kind: "wait", reason: "slots", message: full, meanwhile: harmless };
  }

  return { ask, breaker: () => breaker.state(), close: () => breaker.close() };
}

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
