import * as v from "valibot";
import type { Api } from "../../kube/api.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/kube-error.ts";
import type { Entry } from "./event-book.ts";
import { type EventPlace, eventChange, eventObject } from "./event-object.ts";

export interface WrittenEvent {
  readonly count: number;
  readonly firstAt: Date;
}

const EventSchema = v.object({ count: v.nullish(v.number()), firstTimestamp: v.nullish(v.string()) });

/** Makes the event, or counts on the one that is there: of this agent, or of the one before it. */
export async function writeEvent(api: Api, entry: Entry, node: string): Promise<WrittenEvent> {
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

/** Undefined where the API has forgotten it, as it does after an hour. */
async function bump(api: Api, entry: Entry, { count, firstAt }: WrittenEvent): Promise<WrittenEvent | undefined> {
  const { place, draft, lastAt, unwritten } = entry;
  const event = { count: count + unwritten, firstAt };
  const path = `${eventsPath(place)}/${encodeURIComponent(place.name)}`;
  return await unlessMissing(api.patch(path, eventChange(draft, { ...event, lastAt }), "merge").then(() => event));
}

/** By a patch of nothing, which gives it as it stands: a kubelet's own credentials may patch events and not get them. */
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
