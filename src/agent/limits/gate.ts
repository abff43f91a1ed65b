import { type Disruption, STEPS } from "../../evidence/step.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, type KubeErrorKind, orKubeError } from "../../kube/errors.ts";
import type { PlannedAction } from "../../plan/plan.ts";
import { type BreakerOptions, openBreaker } from "./breaker.ts";
import { openSlots } from "./slots.ts";

export type FleetAnswer =
  /** `release` must be called when the heal has ended; it never throws. */
  | { readonly kind: "go"; release(): Promise<void> }
  | {
      readonly kind: "wait";
      readonly reason: "breaker" | "slots" | "maintenance";
      readonly message: string;
      /** Actions that may run anyway, because they disrupt no pod. */
      readonly meanwhile: readonly PlannedAction[];
    };

/** The maximum time that a heal waits for the API. */
const ASK_MS = 2000;
/** After an API failure it is not asked for this long, and healing does not wait for it. */
const LEAVE_ALONE_MS = 30_000;

const GO: FleetAnswer = { kind: "go", release: () => Promise.resolve() };

/**
 * Whether the fleet allows this node to act now. Fails open: an API that is down, refuses or hangs never prevents a node from healing. Only an open breaker stays open
 * for a while, because the API may be down for the same reason.
 */
export function openFleetGate(options: BreakerOptions) {
  const { openCluster, policy, timing, warn } = options;
  const breaker = openBreaker(options);
  const slots = openSlots(options);
  let leftAloneUntilMs = 0;
  /** One for each request: a role may allow one and not the other. */
  const lastTrouble: { [Request in "count" | "slot"]?: KubeErrorKind } = {};

  /** Logs an error when it starts or changes, not on every call. */
  async function loggedOnce<T>(request: keyof typeof lastTrouble, asking: Promise<T>): Promise<T | KubeError> {
    const answer = await orKubeError(asking);
    const error = answer instanceof KubeError ? answer : undefined;
    if (error !== undefined) leftAloneUntilMs = timing.clock() + LEAVE_ALONE_MS;
    if (error !== undefined && error.kind !== lastTrouble[request])
      warn("fleet limits unavailable; healing continues without them", error.message);
    lastTrouble[request] = error?.kind;
    return answer;
  }

  async function ask(actions: readonly PlannedAction[]): Promise<FleetAnswer> {
    if (actions.length === 0) return GO;
    const startedMs = timing.clock();
    const isLeftAlone = startedMs < leftAloneUntilMs;
    const checked = isLeftAlone ? undefined : await loggedOnce("count", breaker.check(ASK_MS));
    const { open, message = "" } = breaker.state();
    if (open) return { kind: "wait", reason: "breaker", message, meanwhile: [] };
    if (isLeftAlone || checked instanceof KubeError) return GO;
    const { disruptive, harmless } = byDisruption(actions);
    const waitMs = startedMs + ASK_MS - timing.clock();
    if (disruptive.length === 0 || waitMs <= 0) return GO;
    const slot = await loggedOnce(
      "slot",
      withApi(openCluster, waitMs, (api) => slots.take(api, policy())),
    );
    if (slot instanceof KubeError) return GO;
    if (slot.kind === "held") return { kind: "go", release: () => slot.slot.release() };
    const who = slot.by.join(", ") || "others were faster";
    const full = `as many nodes of the fleet as may heal at once are doing so (${who})`;
    return { kind: "wait", reason: "slots", message: full, meanwhile: harmless };
  }

  return { ask, breaker: breaker.state, close: breaker.close };
}

type Ask = (actions: readonly PlannedAction[]) => Promise<FleetAnswer>;

/** Nothing disruptive while others work on the node: they drain, reboot or repair it. */
export async function askInMaintenance(
  actions: readonly PlannedAction[],
  maintenance: string,
  ask: Ask,
): Promise<FleetAnswer> {
  const { disruptive, harmless } = byDisruption(actions);
  if (disruptive.length === 0) return await ask(actions);
  const answer = await ask(harmless);
  if (answer.kind === "wait") return answer;
  await answer.release();
  const message = `the node is in maintenance by ${maintenance}`;
  return { kind: "wait", reason: "maintenance", message, meanwhile: harmless };
}

/** As many as a kubelet itself may do in a minute. */
const A_FEW = 5;

/** The disruptive ones need a slot. */
export function byDisruption(actions: readonly PlannedAction[]) {
  const isBulk = actions.filter((action) => hasStep(action, "in-bulk")).length > A_FEW;
  const { disruptive = [], harmless = [] } = Object.groupBy(actions, (action) =>
    hasStep(action, "always") || (isBulk && hasStep(action, "in-bulk")) ? "disruptive" : "harmless",
  );
  return { disruptive, harmless };
}

function hasStep({ steps, followUps = [] }: PlannedAction, disruption: Disruption): boolean {
  return [...steps, ...followUps].some(({ kind }) => STEPS[kind].disruption === disruption);
}
