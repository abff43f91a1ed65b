import type { Api } from "./api.ts";
import type { ApiAttachment, NodeVolume, NodeVolumes } from "./cluster-facts.ts";
import { getNodeAttachments, listNodeAttachments, type NodeAttachments } from "./node-attachments.ts";
import { attachmentName } from "./volume-attachments.ts";

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
export const readOnce: ReadAttachments = (api, { node }) => listNodeAttachments(api, node);

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
  /** Names of attached attachments that are requested until they are gone. */
  const leaving = new Set<string>();
  let attachedBefore: readonly string[] = [];
  let turn = 0;

  function keep(listed: NodeAttachments): NodeAttachments {
    const intervalMs = Math.max(UNPROMPTED_MS * (1 + Math.random()), (listed.total / OBJECTS_PER_MINUTE) * 60_000);
    // Jitter: nodes that started at the same time must not all read a long list at the same time.
    dueAt = now() + (listed.complete ? intervalMs : intervalMs * Math.random());
    if (listed.complete) forget([...leaving], listed.here);
    last = listed;
    return listed;
  }

  function forget(asked: readonly string[], found: readonly ApiAttachment[]): void {
    for (const name of asked) if (!found.some((one) => one.name === name && isUnsettled(one))) leaving.delete(name);
  }

  function suspects({ node, volumes }: AttachmentQuestion): readonly string[] {
    const names = (of: readonly NodeVolume[] = []) =>
      of.map(({ driver, handle }) => attachmentName(handle, driver, node));
    const attached = names(volumes?.attached);
    const inUse = names(volumes?.inUse);
    if (volumes !== undefined) {
      for (const name of attachedBefore) if (!attached.includes(name)) leaving.add(name);
      for (const name of attached) leaving.delete(name);
      attachedBefore = attached;
    }
    const onTheirWay = [
      ...inUse.filter((name) => !attached.includes(name)),
      ...attached.filter((name) => !inUse.includes(name)),
    ];
    const hanging = (last?.here ?? []).filter(isUnsettled).map(({ name }) => name);
    return [...new Set([...hanging, ...leaving, ...onTheirWay])];
  }

  /** Requests a part of them in turn, if the scan may not request all. */
  async function askByName(api: Api, node: string, names: readonly string[], most: number): Promise<NodeAttachments> {
    const count = Math.max(1, Math.min(most, MAX_NAMES));
    const from = names.length <= count ? 0 : turn % names.length;
    const asked = [...names.slice(from), ...names.slice(0, from)].slice(0, count);
    turn += asked.length;
    const found = await getNodeAttachments(api, node, asked);
    forget(asked, found);
    const others = (last?.here ?? []).filter(({ name }) => !asked.includes(name));
    last = { elsewhere: new Map(), total: 0, complete: false, ...last, here: [...others, ...found] };
    return last;
  }

  return async (api, question) => {
    const { node, isAwaited, most } = question;
    const names = suspects(question);
    if (last === undefined) return keep(await listNodeAttachments(api, node, { mostPages: 1 }));
    const isSmall = last.total <= SMALL_CLUSTER;
    if (now() >= dueAt || (isSmall && (isAwaited || names.length > 0)))
      return keep(await listNodeAttachments(api, node));
    if (names.length > 0) return await askByName(api, node, names, most);
    return isAwaited ? last : undefined;
  };
}

export function isUnsettled({ attached, deleting }: Pick<ApiAttachment, "attached" | "deleting">): boolean {
  return !attached || deleting;
}
