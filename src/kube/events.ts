import * as v from "valibot";
import { type Api, FIRST_ISSUE } from "./api.ts";
import type { PodEvent } from "./cluster-facts.ts";
import { KubeError } from "./errors.ts";

/** The reasons about sandboxes and volumes. */
const REASONS: ReadonlySet<string> = new Set([
  "FailedCreatePodSandBox",
  "FailedKillPod",
  "FailedMount",
  "FailedAttachVolume",
]);

/**
 * A field selector only supports AND, so the reasons cannot be selected. The most frequent other reasons of an
 * unhealthy cluster are excluded on the server instead.
 */
const NOISE = ["BackOff", "Unhealthy", "Failed", "FailedScheduling", "DNSConfigForming", "NodeNotReady", "Evicted"];
const SELECTOR = ["involvedObject.kind=Pod", "type!=Normal", ...NOISE.map((reason) => `reason!=${reason}`)].join(",");

/** One page only: events are evidence, and no decision depends on them. */
const MAX_EVENTS = 500;
const LONGEST_MESSAGE = 600;

const EventSchema = v.object({
  involvedObject: v.object({
    namespace: v.nullish(v.string()),
    name: v.nullish(v.string()),
    uid: v.nullish(v.string()),
  }),
  reason: v.nullish(v.string()),
  message: v.nullish(v.string()),
  count: v.nullish(v.number()),
  series: v.nullish(v.object({ count: v.nullish(v.number()), lastObservedTime: v.nullish(v.string()) })),
  lastTimestamp: v.nullish(v.string()),
  eventTime: v.nullish(v.string()),
});

const EventListSchema = v.object({ items: v.nullish(v.array(EventSchema)) });

/** Recent events about these pods, the last one for each pod and reason. */
export async function readEvents(
  api: Api,
  pods: readonly { readonly namespace: string; readonly name: string }[],
): Promise<readonly PodEvent[]> {
  const here = new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`));
  const query = new URLSearchParams({ fieldSelector: SELECTOR, limit: String(MAX_EVENTS) });
  const list = v.safeParse(EventListSchema, await api.get(`/api/v1/events?${query.toString()}`), FIRST_ISSUE);
  if (!list.success) throw new KubeError("unreadable", "the API server's list of events has no list structure");
  const last = new Map<string, PodEvent>();
  for (const item of list.output.items ?? []) {
    const { involvedObject, reason, message, count, series } = item;
    const { namespace, name, uid } = involvedObject;
    if (!namespace || !name || !reason || !REASONS.has(reason) || !here.has(`${namespace}/${name}`)) continue;
    last.set(`${namespace}/${name}/${reason}`, {
      namespace,
      pod: name,
      reason,
      message: (message ?? "").slice(0, LONGEST_MESSAGE),
      count: series?.count ?? count ?? 1,
      uid: uid || undefined,
      at: lastTime(item),
    });
  }
  return [...last.values()];
}

/** A series keeps the time of its first event in the old field. */
function lastTime({ series, lastTimestamp, eventTime }: v.InferOutput<typeof EventSchema>): Date | undefined {
  const text = series?.lastObservedTime ?? lastTimestamp ?? eventTime;
  if (!text) return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
