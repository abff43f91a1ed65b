import * as v from "valibot";
import { parseJson } from "../host/json.ts";
import type { Api } from "../kube/api.ts";
import { countReports, type FleetCounts } from "./breaker.ts";
import { getLease, type Lease, writeLease } from "./lease.ts";
import { readReports } from "./reports.ts";
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
