import * as v from "valibot";
import type { Api } from "../../kube/api.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/errors.ts";
import type { ClusterUse } from "../limits/timing.ts";
import type { AgentEvent } from "../state/state.ts";
import type { Publisher } from "./condition-publisher.ts";
import {
  type Draft,
  draftsOf,
  type EventPlace,
  eventChange,
  eventObject,
  eventPlace,
  type PublishedChange,
  publishedChange,
} from "./event-content.ts";

/** Changes within this time are combined. */
const GATHER_MS = 2000;
/** The maximum number of writes per hour; available at once after a quiet hour. */
const BUDGET = 60;
const HOUR_MS = 60 * 60_000;
/** With less than this left, there are no events on pods. */
const SPARE = 15;

/** Publishes changes as events: soon, combined, and with a rate limit. */
export function eventRecorder({ nodeName, timing }: ClusterUse): Publisher & { record(event: AgentEvent): void } {
  const { clock, now } = timing;
  const book = eventBook(clock);
  let gathered: PublishedChange[] = [];
  let gatheredSinceMs = 0;
  /** When it happened: an API that is down may receive it much later. */
  let happenedAt = now();
  let budget = { left: BUDGET, atMs: clock() };

  function budgetNow(): number {
    return Math.min(BUDGET, budget.left + ((clock() - budget.atMs) / HOUR_MS) * BUDGET);
  }

  function settle(): void {
    if (gathered.length === 0 || clock() < gatheredSinceMs + GATHER_MS) return;
    for (const draft of draftsOf(gathered, budgetNow() >= SPARE)) book.add(draft, nodeName(), happenedAt);
    gathered = [];
  }

  function dueMs(): number {
    settle();
    const gatheredMs = gathered.length === 0 ? Number.POSITIVE_INFINITY : gatheredSinceMs + GATHER_MS;
    const [first] = book.open();
    const affordableMs = clock() + Math.max(0, 1 - budgetNow()) * (HOUR_MS / BUDGET);
    const entryMs = first === undefined ? Number.POSITIVE_INFINITY : Math.max(book.dueMs(first), affordableMs);
    return Math.min(gatheredMs, entryMs);
  }

  /**
   * A pod's namespace may be deleted or terminating; the namespace of the node's own events always exists. An API
   * server that has just started answers 403 until it has loaded its roles: one refusal is not permanent.
   */
  async function write(api: Api): Promise<void> {
    const closed = new Set<string>();
    for (const entry of book.open().filter((one) => book.dueMs(one) <= clock())) {
      if (budgetNow() < 1) return;
      const { namespace } = entry.place;
      const isOfPod = entry.draft.pod !== undefined;
      if (isOfPod && closed.has(namespace)) {
        book.postpone(entry);
        continue;
      }
      budget = { left: budgetNow() - 1, atMs: clock() };
      const outcome = await orKubeError(writeEvent(api, entry, nodeName()));
      if (!(outcome instanceof KubeError)) book.written(entry, outcome);
      else if (isOfPod && outcome.kind === "not-found") book.forget(entry);
      else if (isOfPod && outcome.kind === "forbidden") {
        closed.add(namespace);
        book.postpone(entry);
      } else throw outcome;
    }
  }

  return {
    record: (event) => {
      const change = publishedChange(event);
      if (change === undefined) return;
      settle();
      if (gathered.length === 0) {
        gatheredSinceMs = clock();
        happenedAt = now();
      }
      gathered.push(change);
    },
    dueMs,
    write,
  };
}

/** One event of the API, with its unpublished changes. */
interface Entry {
  readonly place: EventPlace;
  readonly draft: Draft;
  readonly firstAt: Date;
  readonly lastAt: Date;
  /** The state in the API; missing if it was never written. */
  readonly written?: { readonly count: number; readonly atMs: number };
  readonly unwritten: number;
  /** The minimum interval until the next write. */
  readonly gapMs: number;
  readonly forbidden?: { readonly times: number; readonly untilMs: number } | undefined;
}

/** Doubles each time, then the entry is dropped. */
const FORBIDDEN_PAUSE_MS = 15_000;
const MAX_FORBIDDEN = 4;

const FIRST_GAP_MS = 5 * 60_000;
/** The API drops an event after an hour: an ongoing one is repeated about that often. */
const LONGEST_GAP_MS = 60 * 60_000;
/** More than a node has pods. */
const MAX_ENTRIES = 300;

/** Increases the count of the existing event, with growing intervals, instead of creating new ones. */
function eventBook(clock: () => number) {
  const entries = new Map<string, Entry>();
  const keyOf = ({ namespace, name }: EventPlace): string => `${namespace}/${name}`;
  const dueMs = ({ written, gapMs, forbidden }: Entry): number =>
    Math.max(written === undefined ? 0 : written.atMs + gapMs, forbidden?.untilMs ?? 0);

  return {
    dueMs,
    add: (draft: Draft, node: string, at: Date): void => {
      const place = eventPlace(draft, node);
      const before = entries.get(keyOf(place));
      // Moved to the end: the entry that was not updated for longest is dropped first.
      entries.delete(keyOf(place));
      const unwritten = (before?.unwritten ?? 0) + draft.count;
      entries.set(keyOf(place), { firstAt: at, gapMs: FIRST_GAP_MS, ...before, place, draft, lastAt: at, unwritten });
      const [oldest] = entries.keys();
      if (entries.size > MAX_ENTRIES && oldest !== undefined) entries.delete(oldest);
    },
    /** Entries with something to write, the due ones first. */
    open: (): readonly Entry[] =>
      [...entries.values()]
        .filter(({ unwritten }) => unwritten > 0)
        .toSorted((one, other) => dueMs(one) - dueMs(other)),
    written: (entry: Entry, { count, firstAt }: WrittenEvent): void => {
      const gapMs = entry.written === undefined ? entry.gapMs : Math.min(entry.gapMs * 2, LONGEST_GAP_MS);
      const recorded = { ...entry, forbidden: undefined, firstAt, written: { count, atMs: clock() }, gapMs };
      const unwritten = (entries.get(keyOf(entry.place))?.unwritten ?? entry.unwritten) - entry.unwritten;
      entries.set(keyOf(entry.place), { ...recorded, unwritten });
    },
    postpone: (entry: Entry): void => {
      const times = (entry.forbidden?.times ?? 0) + 1;
      const untilMs = clock() + FORBIDDEN_PAUSE_MS * 2 ** (times - 1);
      // The entry may have changed while it was refused.
      const current = entries.get(keyOf(entry.place)) ?? entry;
      if (times >= MAX_FORBIDDEN) entries.delete(keyOf(entry.place));
      else entries.set(keyOf(entry.place), { ...current, forbidden: { times, untilMs } });
    },
    forget: ({ place }: Entry): void => {
      entries.delete(keyOf(place));
    },
  };
}

interface WrittenEvent {
  readonly count: number;
  readonly firstAt: Date;
}

const EventSchema = v.object({ count: v.nullish(v.number()), firstTimestamp: v.nullish(v.string()) });

/** Creates the event, or increases the count of the existing one, of this agent or of the previous one. */
async function writeEvent(api: Api, entry: Entry, node: string): Promise<WrittenEvent> {
  const known = entry.written && { count: entry.written.count, firstAt: entry.firstAt };
  if (known !== undefined) return (await bump(api, entry, known)) ?? (await create(api, entry, node));
  const created = await orKubeError(create(api, entry, node));
  if (!(created instanceof KubeError)) return created;
  if (created.kind !== "conflict") throw created;
  const standing = await read(api, entry.place);
  return (standing && (await bump(api, entry, standing))) ?? (await create(api, entry, node));
}

async function create(api: Api, entry: Entry, node: string): Promise<WrittenEvent> {
  const { place, draft, lastAt, unwritten } = entry;
  const event = { count: unwritten, firstAt: entry.firstAt };
  await api.create(eventsPath(place), eventObject(draft, node, { ...event, lastAt }));
  return event;
}

/** Undefined if the API has dropped it, as it does after an hour. */
async function bump(api: Api, entry: Entry, { count, firstAt }: WrittenEvent): Promise<WrittenEvent | undefined> {
  const { place, draft, lastAt, unwritten } = entry;
  const event = { count: count + unwritten, firstAt };
  const path = `${eventsPath(place)}/${encodeURIComponent(place.name)}`;
  return await unlessMissing(api.patch(path, eventChange(draft, { ...event, lastAt }), "merge").then(() => event));
}

/** Uses an empty patch, which returns the object: a kubelet's own credentials may patch events and not get them. */
async function read(api: Api, place: EventPlace): Promise<WrittenEvent | undefined> {
  const path = `${eventsPath(place)}/${encodeURIComponent(place.name)}`;
  const object = await unlessMissing(api.patch(path, {}, "merge"));
  if (object === undefined) return undefined;
  const result = v.safeParse(EventSchema, object);
  if (!result.success) throw new KubeError("unreadable", "the API server's answer is no event");
  return { count: result.output.count ?? 1, firstAt: new Date(result.output.firstTimestamp ?? 0) };
}

function eventsPath({ namespace }: EventPlace): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
}
