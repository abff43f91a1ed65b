import * as v from "valibot";
import { parseJson } from "../../host/text.ts";
import type { Api } from "../../kube/api.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";
import { KubeError, orKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { withApi } from "../../kube/with-api.ts";
import {
  type BreakerState,
  CLOSED,
  countReports,
  decideBreaker,
  type FleetCounts,
  type FleetPolicy,
  type NodeHealth,
  WINDOW_MS,
} from "./breaker.ts";
import { getLease, type Lease, writeLease } from "./slots.ts";
import type { Timing } from "./timing.ts";

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
export const FRESH_MS = 5000;
/** How long the node that announced a count has to finish it. */
const COUNTING_MS = 10_000;
const PATIENCE_MS = 500;

const amount = v.pipe(v.number(), v.integer(), v.minValue(0));
const CountsSchema = v.object({
  reporting: amount,
  ill: amount,
  turnedIll: amount,
  at: v.pipe(v.string(), v.isoTimestamp()),
});

export interface Counter {
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
  const wish = { holder: node, durationSeconds: COUNTING_MS / 1000, now: timing.now() };
  const claim = isBeingCounted(seen, timing) ? undefined : await writeLease(api, ref, seen, wish);
  if (claim === undefined) {
    await timing.sleep(PATIENCE_MS, signal);
    return freshCounts(await getLease(api, ref), timing);
  }
  const counts = countReports(await readReports(api), timing.now());
  const annotations = { [ANNOTATION]: JSON.stringify({ ...counts, at: timing.now().toISOString() }) };
  // If another count was written first, it is as good for the others, and ours is good for us.
  await writeLease(api, ref, claim, { ...wish, holder: "", now: timing.now(), annotations });
  return counts;
}

function freshCounts(lease: Lease | undefined, { now }: Timing): FleetCounts | undefined {
  const text = lease?.annotations[ANNOTATION];
  const result = v.safeParse(CountsSchema, text === undefined ? undefined : parseJson(text));
  if (!result.success || !isWithin(result.output.at, FRESH_MS, now())) return undefined;
  const { at: _at, ...counts } = result.output;
  return counts;
}

/** Only a cache: different clocks cost a second count, or a slightly longer wait. */
function isBeingCounted(lease: Lease | undefined, { now }: Timing): boolean {
  return lease !== undefined && lease.holder !== "" && isWithin(lease.renewedAt, COUNTING_MS, now());
}

function isWithin(time: string, span: number, now: Date): boolean {
  return Math.abs(now.getTime() - new Date(time).getTime()) <= span;
}

/** The type of the node condition that every agent publishes. */
export const CONDITION_TYPE = "GhostSandboxes";

const ConditionSchema = v.object({
  type: v.string(),
  status: v.string(),
  lastTransitionTime: v.nullish(v.string()),
  lastHeartbeatTime: v.nullish(v.string()),
});

/** A Node is tens of kilobytes, mostly image names: it is reduced to a few bytes before the next page is requested. */
const ReportSchema = v.pipe(
  v.object({ status: v.nullish(v.object({ conditions: v.nullish(v.array(ConditionSchema)) })) }),
  v.transform(({ status }): NodeHealth | undefined => {
    const condition = status?.conditions?.find(({ type }) => type === CONDITION_TYPE);
    if (!condition?.lastHeartbeatTime || !condition.lastTransitionTime) return undefined;
    return {
      ill: condition.status === "True",
      turnedAt: new Date(condition.lastTransitionTime),
      heartbeatAt: new Date(condition.lastHeartbeatTime),
    };
  }),
);

const PAGE_SIZE = 100;

/**
 * The reports of all nodes. Not with resourceVersion=0: a server that answers from its cache ignores the page size, and
 * a thousand nodes at once exceed the agent's memory.
 */
async function readReports(api: Api): Promise<readonly NodeHealth[]> {
  const reports = await listAll(api, { path: "/api/v1/nodes", item: ReportSchema, fresh: true, pageSize: PAGE_SIZE });
  return reports.filter((report) => report !== undefined);
}

export interface BreakerWatchOptions {
  readonly openCluster: OpenCluster;
  readonly policy: () => FleetPolicy;
  readonly node: () => string;
  readonly timing: Timing;
  /** Called when it opens or closes. */
  readonly onTurn: (state: BreakerState) => void;
}

export interface BreakerWatch {
  state(): BreakerState;
  /** Counts the fleet if that is due, and waits at most this long; throws a KubeError if it cannot be counted. */
  check(waitMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Listing a large fleet takes a while; callers wait less than this. */
const COUNT_MS = 15_000;
/** While it is open, it is checked regularly, even if this node has no actions any more. */
const CHECK_EVERY_MS = 30_000;

export function openBreaker({ openCluster, policy, node, timing, onTurn }: BreakerWatchOptions): BreakerWatch {
  const ended = new AbortController();
  let state = CLOSED;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  let counting: Promise<KubeError | undefined> | undefined;
  let watching: Promise<void> = Promise.resolve();

  async function count(): Promise<KubeError | undefined> {
    const { namespace, ...limits } = policy();
    const counter = { namespace, node: node(), timing, signal: ended.signal };
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
    onTurn(next);
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
    state: () => state,
    check: async (waitMs) => {
      if (timing.clock() - countedAtMs < FRESH_MS) return;
      const enough = new AbortController();
      const late = timing.sleep(waitMs, enough.signal).then(() => "late" as const);
      const outcome = await Promise.race([countOnce(), late]);
      enough.abort();
      if (outcome === "late") throw new KubeError("timeout", `the fleet could not be counted within ${waitMs} ms`);
      if (outcome instanceof KubeError) throw outcome;
    },
    close: async () => {
      ended.abort();
      await watching;
    },
  };
}
