import * as v from "valibot";
import { parseJson } from "../host/text.ts";
import type { Api } from "../kube/api.ts";
import { listAll } from "../kube/list.ts";
import { countReports, type FleetCounts, type NodeHealth } from "./breaker.ts";
import { getLease, type Lease, writeLease } from "./lease.ts";
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
