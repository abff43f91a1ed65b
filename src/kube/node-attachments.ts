import type { Api } from "./api.ts";
import type { ApiAttachment } from "./cluster-facts.ts";
import { KubeError, unlessMissing } from "./kube-error.ts";
import { attachmentPages, getAttachment } from "./volume-attachments.ts";

/** The cluster's VolumeAttachments as far as they concern one node. */
export interface NodeAttachments {
  readonly here: readonly ApiAttachment[];
  /** PersistentVolume -> the other nodes that it is attached to. */
  readonly elsewhere: ReadonlyMap<string, readonly string[]>;
  /** The number in the cluster, as far as it is known. */
  readonly total: number;
  /** False if the list was not read to its end. */
  readonly complete: boolean;
}

const NONE: NodeAttachments = { here: [], elsewhere: new Map(), total: 0, complete: true };
/** A server may omit the remaining count: then the cluster is treated as large. */
const UNCOUNTED = 10_000;

/** Reads page by page and keeps little of each, because a cluster may have tens of thousands. */
export async function listNodeAttachments(
  api: Api,
  node: string,
  { mostPages = Number.POSITIVE_INFINITY }: { readonly mostPages?: number } = {},
): Promise<NodeAttachments> {
  try {
    return (await unlessMissing(readPages(api, node, mostPages))) ?? NONE;
  } catch (error) {
    if (!(error instanceof KubeError && error.kind === "expired")) throw error;
    return await readPages(api, node, mostPages);
  }
}

async function readPages(api: Api, node: string, mostPages: number): Promise<NodeAttachments> {
  const here: ApiAttachment[] = [];
  const elsewhere = new Map<string, string[]>();
  let seen = 0;
  let pages = 0;
  for await (const { items, remaining = UNCOUNTED } of attachmentPages(api)) {
    for (const one of items) {
      if (one.node === node) here.push(one);
      else if (one.attached && one.volume !== undefined)
        elsewhere.set(one.volume, [...(elsewhere.get(one.volume) ?? []), one.node]);
    }
    seen += items.length;
    pages += 1;
    if (pages >= mostPages || remaining === 0)
      return { here, elsewhere, total: seen + remaining, complete: remaining === 0 };
  }
  return { here, elsewhere, total: seen, complete: true };
}

/** Returns those of these names that exist and belong to the node; each costs a request. */
export async function getNodeAttachments(
  api: Api,
  node: string,
  names: readonly string[],
): Promise<readonly ApiAttachment[]> {
  const found = await Promise.all(names.map((name) => getAttachment(api, name)));
  return found.flatMap((one) => (one?.node === node ? [one] : []));
}
