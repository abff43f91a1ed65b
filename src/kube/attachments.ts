import * as v from "valibot";
import { type Api, getObject } from "./api.ts";
import type { ApiAttachment, NodeVolume, NodeVolumes } from "./cluster-facts.ts";
import { KubeError, unlessMissing } from "./errors.ts";
import { pagesOf } from "./list.ts";

const PATH = "/apis/storage.k8s.io/v1/volumeattachments";

const failure = v.nullish(v.object({ message: v.nullish(v.string()) }));

const AttachmentSchema = v.object({
  metadata: v.object({
    name: v.string(),
    creationTimestamp: v.string(),
    deletionTimestamp: v.nullish(v.string()),
    finalizers: v.nullish(v.array(v.string())),
  }),
  spec: v.object({
    attacher: v.string(),
    nodeName: v.string(),
    source: v.object({ persistentVolumeName: v.nullish(v.string()) }),
  }),
  status: v.nullish(v.object({ attached: v.nullish(v.boolean()), attachError: failure, detachError: failure })),
});

/** The cluster's VolumeAttachments as far as they concern one node. */
interface NodeAttachments {
  readonly here: readonly ApiAttachment[];
  /** PersistentVolume -> its attachments to other nodes. */
  readonly elsewhere: ReadonlyMap<string, readonly AttachedElsewhere[]>;
  /** The number in the cluster, as far as it is known. */
  readonly total: number;
  /** False if the list was not read to its end. */
  readonly complete: boolean;
  /** It was read just now: an attachment that is missing does not exist. */
  readonly current: boolean;
}

export interface AttachedElsewhere extends Pick<ApiAttachment, "name" | "node"> {
  readonly deleting: boolean;
}

/** The state of the node that decides which attachments are read. */
export interface AttachmentQuestion {
  readonly node: string;
  /** A pod of the node waits for a volume. */
  readonly isAwaited: boolean;
  /** From the Node object; missing if it could not be read. */
  readonly volumes?: NodeVolumes;
  /** The maximum number of requests for single objects. */
  readonly most: number;
}

/** The attachments of one node; undefined when no request is needed. */
export type ReadAttachments = (api: Api, question: AttachmentQuestion) => Promise<NodeAttachments | undefined>;

/** A single scan reads all of them, because an attachment with a hung deletion may have no pod any more. */
export const readOnce: ReadAttachments = (api, { node }) => listOf(api, node);

/** The interval while there is no sign of a hang. */
const UNPROMPTED_MS = 300_000;
/** Limits the load of a large cluster's API server, where thousands of nodes send the same list request. */
const OBJECTS_PER_MINUTE = 100;
/** The size of one page. */
const SMALL_CLUSTER = 500;
const MAX_NAMES = 20;

/**
 * For repeated scans. A list of a small cluster is one page, and is read whenever a pod waits. In a large cluster the
 * interval between lists grows with their length; in between, attachments are requested by name if the Node's status or
 * the last list shows that they are changing.
 */
export function attachmentReader(now: () => number = () => performance.now()): ReadAttachments {
  let last: NodeAttachments | undefined;
  let dueAt = Number.NEGATIVE_INFINITY;
  /** The names in the Node's status: whether both attached and in use. */
  let reported: ReadonlyMap<string, boolean> = new Map();
  /** Names that are requested until they are gone or at rest, those that were requested last at the end. */
  const followed = new Set<string>();

  function suspects({ node, volumes }: AttachmentQuestion): readonly string[] {
    if (volumes !== undefined) {
      const [attached, inUse] = [volumes.attached, volumes.inUse].map((some) => namesOf(some, node));
      const all = [...(attached ?? []), ...(inUse ?? [])];
      reported = new Map(all.map((name) => [name, attached?.has(name) === true && inUse?.has(name) === true]));
    }
    const hanging = new Set((last?.here ?? []).filter(isUnsettled).map(({ name }) => name));
    for (const name of [...hanging, ...reported.keys()]) followed.add(name);
    return [...followed].filter((name) => hanging.has(name) || reported.get(name) !== true);
  }

  function forget(names: Iterable<string>, found: readonly ApiAttachment[]): void {
    const unsettled = new Set(found.filter(isUnsettled).map(({ name }) => name));
    for (const name of names) if (!reported.has(name) && !unsettled.has(name)) followed.delete(name);
  }

  function keep(listed: NodeAttachments): NodeAttachments {
    const intervalMs = Math.max(UNPROMPTED_MS * (1 + Math.random()), (listed.total / OBJECTS_PER_MINUTE) * 60_000);
    // Jitter: nodes that started at the same time must not all read a long list at the same time.
    dueAt = now() + (listed.complete ? intervalMs : intervalMs * Math.random());
    if (listed.complete) forget(followed, listed.here);
    last = listed;
    return listed;
  }

  async function askByName(api: Api, node: string, asked: readonly string[], known: NodeAttachments) {
    const all = await Promise.all(asked.map((name) => getAttachment(api, name)));
    const found = all.filter((one) => one?.node === node).filter((one) => one !== undefined);
    for (const name of asked) {
      followed.delete(name);
      followed.add(name);
    }
    forget(asked, found);
    last = { ...known, current: false, here: [...known.here.filter(({ name }) => !asked.includes(name)), ...found] };
    return last;
  }

  return async (api, question) => {
    const { node, isAwaited, most } = question;
    const names = suspects(question);
    if (last === undefined) return keep(await listOf(api, node, 1));
    const isPrompted = isAwaited || names.length > 0;
    if (now() >= dueAt || (last.total <= SMALL_CLUSTER && isPrompted)) return keep(await listOf(api, node));
    if (names.length === 0) return isAwaited ? { ...last, current: false } : undefined;
    return await askByName(api, node, names.slice(0, Math.max(1, Math.min(most, MAX_NAMES))), last);
  };
}

export function isUnsettled({ attached, deletedAt }: Pick<ApiAttachment, "attached" | "deletedAt">): boolean {
  return !attached || deletedAt !== undefined;
}

/** The name that the attach/detach controller and kubelet give to an attachment. */
export function attachmentName({ handle, driver }: NodeVolume, node: string): string {
  // A static import would cost 2 ms at every start.
  const { createHash } = process.getBuiltinModule("node:crypto");
  return `csi-${createHash("sha256").update(`${handle}${driver}${node}`).digest("hex")}`;
}

export function namesOf(volumes: readonly NodeVolume[], node: string): ReadonlySet<string> {
  return new Set(volumes.map((volume) => attachmentName(volume, node)));
}

const NONE: NodeAttachments = { here: [], elsewhere: new Map(), total: 0, complete: true, current: true };
/** A server may omit the remaining count: then the cluster is treated as large. */
const UNCOUNTED = 10_000;

async function listOf(api: Api, node: string, mostPages = Number.POSITIVE_INFINITY): Promise<NodeAttachments> {
  try {
    return (await unlessMissing(readPages(api, node, mostPages))) ?? NONE;
  } catch (error) {
    if (!(error instanceof KubeError && error.kind === "expired")) throw error;
    return await readPages(api, node, mostPages);
  }
}

/** Reads page by page and keeps little of each: the API has no selector but the name, and there may be thousands. */
async function readPages(api: Api, node: string, mostPages: number): Promise<NodeAttachments> {
  const here: ApiAttachment[] = [];
  const elsewhere = new Map<string, AttachedElsewhere[]>();
  let seen = 0;
  let pages = 0;
  for await (const { items, remaining = UNCOUNTED } of pagesOf(api, {
    path: PATH,
    item: AttachmentSchema,
    fresh: true,
  })) {
    for (const one of items.map(toAttachment)) {
      if (one.node === node) here.push(one);
      else if (one.attached && one.volume !== undefined) {
        const other = { name: one.name, node: one.node, deleting: one.deletedAt !== undefined };
        elsewhere.set(one.volume, [...(elsewhere.get(one.volume) ?? []), other]);
      }
    }
    seen += items.length;
    pages += 1;
    if (pages >= mostPages || remaining === 0)
      return { here, elsewhere, total: seen + remaining, complete: remaining === 0, current: remaining === 0 };
  }
  return { here, elsewhere, total: seen, complete: true, current: true };
}

export async function getAttachment(api: Api, name: string): Promise<ApiAttachment | undefined> {
  const path = `${PATH}/${encodeURIComponent(name)}`;
  const attachment = await unlessMissing(getObject(api, path, AttachmentSchema, "VolumeAttachment"));
  return attachment && toAttachment(attachment);
}

function toAttachment({ metadata, spec, status }: v.InferOutput<typeof AttachmentSchema>): ApiAttachment {
  return {
    name: metadata.name,
    attacher: spec.attacher,
    node: spec.nodeName,
    volume: spec.source.persistentVolumeName || undefined,
    attached: status?.attached ?? false,
    createdAt: new Date(metadata.creationTimestamp),
    deletedAt: metadata.deletionTimestamp ? new Date(metadata.deletionTimestamp) : undefined,
    finalizers: metadata.finalizers ?? [],
    error: status?.attachError?.message || status?.detachError?.message || undefined,
  };
}
