import * as v from "valibot";
import { parseJson } from "../../host/text.ts";
import type { Api } from "../../kube/api.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, orKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import type { BreakerState } from "../state/state.ts";
import { getLease, type Lease, writeLease } from "./slots.ts";
import type { ClusterUse, Timing } from "./timing.ts";

export interface FleetPolicy {
  /** How many nodes may heal disruptively at once. */
  readonly slots: number;
  /** The namespace of the slots' Leases. */
  readonly namespace: string;
  /** The share of unhealthy nodes, 0 to 1, that opens the breaker. */
  readonly breakerShare: number;
  /** Fewer unhealthy nodes than this never open the breaker, so that two of three nodes can still be healed. */
  readonly breakerLeast: number;
  /** This many unhealthy nodes open the breaker whatever their share; missing: only the share counts. */
  readonly breakerNodes?: number;
}

type BreakerLimits = Pick<FleetPolicy, "breakerShare" | "breakerLeast" | "breakerNodes">;

export const CLOSED: BreakerState = { open: false };

/** Three missed heartbeats. */
const SILENT_MS = 15 * 60_000;
const WINDOW_MINUTES = 10;
/** The period that counts as "at once", and how long it must be quiet before the breaker closes. */
const WINDOW_MS = WINDOW_MINUTES * 60_000;

/**
 * Uses the nodes' own clocks: a clock that is some minutes off changes a count by one, which hardly affects the
 * threshold.
 */
export function countReports(reports: readonly NodeHealth[], now: Date): FleetCounts {
  const reporting = reports.filter(({ heartbeatAt }) => isNear(heartbeatAt, SILENT_MS, now));
  const turned = reporting.filter(({ status, turnedAt }) => status === "True" && isNear(turnedAt, WINDOW_MS, now));
  return { reporting: reporting.length, turnedUnhealthy: turned.length };
}

/**
 * Opens when a large share or number of the fleet became unhealthy at once, and closes below half of the threshold: the nodes are
 * healthy again, or no more became unhealthy for a while. In the second case they are healed, a few at a time.
 */
export function decideBreaker(
  before: BreakerState,
  { reporting, turnedUnhealthy }: FleetCounts,
  { breakerShare, breakerLeast, breakerNodes = Number.POSITIVE_INFINITY }: BreakerLimits,
  now: Date,
): BreakerState {
  const isImplausible = (part: number): boolean =>
    turnedUnhealthy > 0 &&
    (turnedUnhealthy >= breakerNodes * part ||
      (turnedUnhealthy >= breakerLeast * part && turnedUnhealthy / reporting >= breakerShare * part));
  if (before.open) return isImplausible(1 / 2) ? before : CLOSED;
  if (!isImplausible(1)) return CLOSED;
  return {
    open: true,
    since: now,
    message: `${turnedUnhealthy} of ${reporting} nodes became unhealthy within ${WINDOW_MINUTES} minutes: the cause is probably shared, such as the control plane or the network; healing is paused until the number drops`,
  };
}

/**
 * The fleet's state, counted by one node for all: when a thousand nodes become unhealthy at once, a thousand lists of a
 * thousand nodes would overload the API server. The counts are stored in a Lease's annotation.
 */
export const COUNTS_LEASE = "unghost-fleet-counts";
const ANNOTATION = "unghost.dev/fleet-counts";

/**
 * Counts are valid for this long: short, because the first count is made before most nodes of a failing fleet have
 * reported.
 */
const FRESH_MS = 5000;
/** How long the node that announced a count has to finish it. */
const COUNTING_MS = 10_000;
const PATIENCE_MS = 500;

const amount = v.pipe(v.number(), v.integer(), v.minValue(0));
const CountsSchema = v.object({
  /** Nodes with a recent report. Nodes without an agent, or with a stale report, do not count. */
  reporting: amount,
  /** Of these, the ones that became unhealthy recently. */
  turnedUnhealthy: amount,
  at: v.pipe(v.string(), v.isoTimestamp()),
});
type FleetCounts = Readonly<Omit<v.InferOutput<typeof CountsSchema>, "at">>;

interface Counter {
  readonly namespace: string;
  readonly node: string;
  readonly timing: Timing;
  readonly signal: AbortSignal;
}

/** Returns undefined while another node is counting. */
export async function fleetCounts(api: Api, counter: Counter): Promise<FleetCounts | undefined> {
  const { namespace, node, timing, signal } = counter;
  const ref = { namespace, name: COUNTS_LEASE };
  const seen = await getLease(api, ref);
  const known = freshCounts(seen, timing);
  if (known !== undefined) return known;
  const mine = { holder: node, durationSeconds: COUNTING_MS / 1000, now: timing.now() };
  const claim = isBeingCounted(seen, timing) ? undefined : await writeLease(api, ref, seen, mine);
  if (claim === undefined) {
    await timing.sleep(PATIENCE_MS, signal);
    return freshCounts(await getLease(api, ref), timing);
  }
  const counts = countReports(await readReports(api), timing.now());
  const annotations = { [ANNOTATION]: JSON.stringify({ ...counts, at: timing.now().toISOString() }) };
  // If another count was written first, it is as good for the others, and ours is good for us.
  await writeLease(api, ref, claim, { ...mine, holder: "", now: timing.now(), annotations });
  return counts;
}

function freshCounts(lease: Lease | undefined, { now }: Timing): FleetCounts | undefined {
  const text = lease?.metadata.annotations[ANNOTATION];
  const result = v.safeParse(CountsSchema, text === undefined ? undefined : parseJson(text));
  if (!result.success || !isNear(new Date(result.output.at), FRESH_MS, now())) return undefined;
  const { at: _at, ...counts } = result.output;
  return counts;
}

/** Only a cache: different clocks cost a second count, or a slightly longer wait. */
function isBeingCounted(lease: Lease | undefined, { now }: Timing): boolean {
  return (
    lease !== undefined &&
    lease.spec.holderIdentity !== "" &&
    isNear(new Date(lease.spec.renewTime), COUNTING_MS, now())
  );
}

function isNear(time: Date, span: number, now: Date): boolean {
  return Math.abs(now.getTime() - time.getTime()) <= span;
}

/** The types of the node conditions that every agent publishes. */
export const CONDITION_TYPES = ["GhostSandboxes", "SandboxCreation"] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

const text = v.nullish(v.string(), "");
const ConditionSchema = v.object({
  type: v.string(),
  status: v.string(),
  reason: text,
  message: text,
  lastTransitionTime: text,
  lastHeartbeatTime: text,
});

/**
 * A Node and the agent's conditions on it, by any writer. A Node is tens of kilobytes, mostly image names: it is reduced
 * to a few bytes before the next page is requested.
 */
export const NodeSchema = v.pipe(
  v.object({
    metadata: v.object({ name: v.string() }),
    status: v.nullish(
      v.object({
        conditions: v.nullish(v.array(ConditionSchema), []),
        nodeInfo: v.nullish(v.object({ machineID: text, bootID: text })),
      }),
    ),
  }),
  v.transform(({ metadata: { name }, status }) => {
    const { machineID: machineId = "", bootID: bootId = "" } = status?.nodeInfo ?? {};
    const ours = (status?.conditions ?? []).flatMap(({ type, ...rest }) => {
      const known = CONDITION_TYPES.find((one) => one === type);
      return known === undefined ? [] : [standingOf(known, rest)];
    });
    return { name, machineId, bootId, conditions: new Map(ours.map((one) => [one.type, one])) };
  }),
);

function standingOf(type: ConditionType, condition: Omit<v.InferOutput<typeof ConditionSchema>, "type">) {
  const { status, reason, message, lastTransitionTime, lastHeartbeatTime } = condition;
  const [turnedAt, heartbeatAt] = [new Date(lastTransitionTime || 0), new Date(lastHeartbeatTime || 0)];
  return { type, status, reason, message, turnedAt, heartbeatAt };
}

export type StandingCondition = ReturnType<typeof standingOf>;
export type NodeHealth = Pick<StandingCondition, "status" | "turnedAt" | "heartbeatAt">;

const PAGE_SIZE = 100;

/**
 * The reports of all nodes. Not with resourceVersion=0: a server that answers from its cache ignores the page size, and
 * a thousand nodes at once exceed the agent's memory.
 */
async function readReports(api: Api): Promise<readonly NodeHealth[]> {
  const nodes = await listAll(api, { path: "/api/v1/nodes", item: NodeSchema, fresh: true, pageSize: PAGE_SIZE });
  // A report without its times is not an agent's.
  return nodes
    .flatMap(({ conditions }) => conditions.get("GhostSandboxes") ?? [])
    .filter(({ turnedAt }) => turnedAt.getTime() > 0);
}

export interface BreakerOptions extends ClusterUse {
  readonly policy: () => FleetPolicy;
  /** Called when it opens or closes. */
  readonly onBreaker: (state: BreakerState) => void;
}

/** Listing a large fleet takes a while; callers wait less than this. */
const COUNT_MS = 15_000;
/** While it is open, it is checked regularly, even if this node has no actions any more. */
const CHECK_EVERY_MS = 30_000;

export function openBreaker({ openCluster, policy, nodeName, timing, onBreaker }: BreakerOptions) {
  const ended = new AbortController();
  let state = CLOSED;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  let counting: Promise<KubeError | undefined> | undefined;
  let watching: Promise<void> = Promise.resolve();

  async function count(): Promise<KubeError | undefined> {
    const { namespace, ...limits } = policy();
    const counter = { namespace, node: nodeName(), timing, signal: ended.signal };
    const counts = await orKubeError(withApi(openCluster, COUNT_MS, (api) => fleetCounts(api, counter)));
    if (counts instanceof KubeError) {
      // A result this old is stale, and a node must be able to heal without any API.
      if (timing.clock() - countedAtMs > WINDOW_MS) become(CLOSED);
      return counts;
    }
    if (counts === undefined) return undefined;
    countedAtMs = timing.clock();
    become(decideBreaker(state, counts, limits, timing.now()));
    return undefined;
  }

  function become(next: BreakerState): void {
    const before = state;
    state = next;
    if (next.open === before.open) return;
    onBreaker(next);
    if (next.open) watching = watchUntilClosed();
  }

  async function watchUntilClosed(): Promise<void> {
    while (state.open && !ended.signal.aborted) {
      await timing.sleep(CHECK_EVERY_MS * (1 + timing.random() / 2), ended.signal);
      if (!ended.signal.aborted) await countOnce();
    }
  }

  function countOnce(): Promise<KubeError | undefined> {
    counting ??= count().finally(() => {
      counting = undefined;
    });
    return counting;
  }

  return {
    state: (): BreakerState => state,
    /** Counts the fleet if that is due, and waits at most this long; throws a KubeError if it cannot be counted. */
    check: async (waitMs: number): Promise<void> => {
      if (timing.clock() - countedAtMs < FRESH_MS) return;
      const enough = new AbortController();
      const late = timing.sleep(waitMs, enough.signal).then(() => "late" as const);
      const outcome = await Promise.race([countOnce(), late]);
      enough.abort();
      if (outcome === "late") throw new KubeError("timeout", `the fleet could not be counted within ${waitMs} ms`);
      if (outcome instanceof KubeError) throw outcome;
    },
    close: async (): Promise<void> => {
      ended.abort();
      await watching;
    },
  };
}
