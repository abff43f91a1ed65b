import type { Damage } from "../types/snapshot.ts";
import {
  BUCKET_HEADER_BYTES,
  branchElements,
  dataViewOf,
  type Elements,
  type LeafElement,
  leafElements,
  type Meta,
  PAGE_HEADER_BYTES,
  type PageHeader,
  pageHeader,
  readMeta,
  uint64,
} from "./layout.ts";
import type { ByteSource } from "./stable-file.ts";

export interface BoltBucket {
  readonly values: ReadonlyMap<string, Uint8Array>;
  readonly buckets: ReadonlyMap<string, BoltBucket>;
}

interface BoltReading {
  /** The requested content, as far as it could be read. */
  readonly root: BoltBucket;
  /** Empty if the whole file is valid; at most MAX_DAMAGE entries. */
  readonly damage: readonly Damage[];
}

/** Whether the bucket or value at this path of keys is kept. Called only below what is kept itself. */
export type Wanted = (path: readonly string[]) => boolean;

/** Further damage adds nothing for an unreadable file. */
export const MAX_DAMAGE = 50;

/** Branches and nested buckets together. A million records make four levels of branches, containerd's buckets six. */
const MAX_DEPTH = 64;

/**
 * Reads a bolt file completely and keeps the wanted content. Every page is read once, wanted or not, so that damage
 * anywhere is found and the work is bounded by the size of the file.
 */
export function readBolt(source: ByteSource, wanted: Wanted): BoltReading {
  const root = emptyBucket();
  const meta = readMeta(source);
  if ("reasons" in meta) return { root, damage: meta.reasons.map((reason, page) => ({ page, reason })) };
  const damage: Damage[] = [];
  const report = (one: Damage): void => {
    if (damage.length < MAX_DAMAGE) damage.push(one);
  };
  const needed = meta.highWater * meta.pageSize;
  if (needed > source.size) {
    report({ page: 0, reason: `needs ${needed} bytes, and the file ends after ${source.size}` });
  }
  const pages = pageReader(source, meta, report);
  walkPage({ pages, wanted, report, isFull: () => damage.length >= MAX_DAMAGE }, meta.root, {
    bucket: root,
    path: [],
    depth: 0,
  });
  checkFreelist(meta, pages, report);
  return { root, damage };
}

interface Walk {
  readonly pages: PageReader;
  readonly wanted: Wanted;
  readonly report: (damage: Damage) => void;
  readonly isFull: () => boolean;
}

interface Draft {
  readonly values: Map<string, Uint8Array>;
  readonly buckets: Map<string, Draft>;
}

/** The current position in the tree of buckets. */
interface Place {
  /** Undefined if nothing is kept and pages are only checked. */
  readonly bucket: Draft | undefined;
  readonly path: readonly string[];
  readonly depth: number;
}

function emptyBucket(): Draft {
  return { values: new Map(), buckets: new Map() };
}

function walkPage(walk: Walk, id: number, place: Place): void {
  if (walk.isFull()) return;
  if (place.depth > MAX_DEPTH) {
    walk.report({ page: id, reason: `lies more than ${MAX_DEPTH} levels deep` });
    return;
  }
  const page = walk.pages.read(id, ["branch", "leaf"]);
  if (page === undefined) return;
  const { header, bytes } = page;
  if (header.kind === "leaf") {
    walkLeaf(walk, id, leafElements(bytes, header.count), place);
    return;
  }
  const { elements, problem } = branchElements(bytes, header.count);
  if (header.count === 0) walk.report({ page: id, reason: "is a branch without a leaf" });
  if (problem !== undefined) walk.report({ page: id, reason: problem });
  for (const { child } of elements) walkPage(walk, child, { ...place, depth: place.depth + 1 });
}

function walkLeaf(walk: Walk, id: number, { elements, problem }: Elements<LeafElement>, place: Place): void {
  for (const element of elements) {
    if (element.isBucket) walkBucket(walk, id, element, place);
    else keepValue(walk, element, place);
  }
  if (problem !== undefined) walk.report({ page: id, reason: problem });
}

/** Copied, so that the rest of its page can be freed. */
function keepValue(walk: Walk, { key, value }: LeafElement, { bucket, path }: Place): void {
  if (bucket === undefined) return;
  const name = decoder.decode(key);
  if (walk.wanted([...path, name])) bucket.values.set(name, value.slice());
}

function walkBucket(walk: Walk, id: number, { key, value }: LeafElement, place: Place): void {
  if (value.length < BUCKET_HEADER_BYTES) {
    walk.report({ page: id, reason: "holds a bucket that is cut off" });
    return;
  }
  const inside = enter(walk, decoder.decode(key), place);
  const root = uint64(dataViewOf(value), 0);
  if (root === 0) walkInline(walk, id, value.subarray(BUCKET_HEADER_BYTES), inside);
  else walkPage(walk, root, inside);
}

function enter(walk: Walk, name: string, { bucket, path, depth }: Place): Place {
  const deeper = [...path, name];
  if (bucket === undefined || !walk.wanted(deeper)) return { bucket: undefined, path: deeper, depth: depth + 1 };
  const inner = emptyBucket();
  bucket.buckets.set(name, inner);
  return { bucket: inner, path: deeper, depth: depth + 1 };
}

/** A small bucket is stored as a leaf page instead of its value. It may not contain buckets. */
function walkInline(walk: Walk, id: number, page: Uint8Array, place: Place): void {
  if (page.length < PAGE_HEADER_BYTES) {
    walk.report({ page: id, reason: "holds a small bucket that is cut off" });
    return;
  }
  const { kind, count } = pageHeader(page);
  if (kind !== "leaf") {
    walk.report({ page: id, reason: `holds a small bucket of kind ${kind} where leaf belongs` });
    return;
  }
  const inner = leafElements(page, count);
  if (inner.elements.some(({ isBucket }) => isBucket)) {
    walk.report({ page: id, reason: "holds a small bucket with a bucket inside, which bbolt never writes" });
    return;
  }
  walkLeaf(walk, id, inner, place);
}

const decoder = new TextDecoder();

const ID_BYTES = 8;
/** A count that does not fit into 16 bits is in the first element instead. */
const COUNT_IS_FIRST = 0xffff;

/** A page that is in use and also listed as free is overwritten by the next transaction. */
function checkFreelist(meta: Meta, pages: PageReader, report: (damage: Damage) => void): void {
  if (meta.freelist === undefined) return;
  const page = pages.read(meta.freelist, ["freelist"]);
  if (page === undefined) return;
  const { header, bytes } = page;
  const view = dataViewOf(bytes);
  const isLong = header.count === COUNT_IS_FIRST;
  const count = isLong ? uint64(view, PAGE_HEADER_BYTES) : header.count;
  const start = PAGE_HEADER_BYTES + (isLong ? ID_BYTES : 0);
  if (start + count * ID_BYTES > bytes.length) {
    report({ page: header.id, reason: `claims ${count} free pages, more than fit into it` });
    return;
  }
  for (let index = 0; index < count; index += 1) {
    const id = uint64(view, start + index * ID_BYTES);
    if (id < 2 || id >= meta.highWater) {
      report({ page: header.id, reason: `lists page ${id} as free, which lies outside of the file` });
      return;
    }
    if (pages.wasRead(id)) {
      report({ page: id, reason: "is in use and also listed as free" });
      return;
    }
  }
}

export interface Page {
  readonly header: PageHeader;
  /** The page with its overflow and its header. */
  readonly bytes: Uint8Array;
}

/** Returns each page once. A second request for a page is damage: no page of a valid file is referenced twice. */
interface PageReader {
  read(id: number, expected: readonly PageHeader["kind"][]): Page | undefined;
  wasRead(id: number): boolean;
}

const FIRST_DATA_PAGE = 2;

function pageReader(source: ByteSource, meta: Meta, report: (damage: Damage) => void): PageReader {
  const { pageSize } = meta;
  const end = Math.min(meta.highWater, Math.floor(source.size / pageSize));
  const seen = new Uint8Array(end);

  function bad(page: number, reason: string): undefined {
    report({ page, reason });
  }

  function bytesOf(id: number, pages: number): Uint8Array | undefined {
    const bytes = source.read(id * pageSize, pages * pageSize);
    return bytes instanceof Uint8Array ? bytes : bad(id, bytes.failure);
  }

  return {
    wasRead: (id) => seen[id] === 1,
    read: (id, expected) => {
      if (id < FIRST_DATA_PAGE || id >= end) return bad(id, "is pointed to and lies outside of the file");
      if (seen[id] === 1) return bad(id, "is pointed to from two places");
      const first = bytesOf(id, 1);
      if (first === undefined) return undefined;
      const header = pageHeader(first.subarray(0, PAGE_HEADER_BYTES));
      if (header.id !== id) return bad(id, `calls itself page ${header.id}`);
      if (!expected.includes(header.kind)) {
        return bad(id, `is of kind ${header.kind} where ${expected.join(" or ")} belongs`);
      }
      const pages = header.overflow + 1;
      if (id + pages > end) return bad(id, `claims to go on for ${header.overflow} pages, beyond the end of the file`);
      const taken = seen.subarray(id, id + pages).indexOf(1);
      if (taken !== -1) return bad(id, `reaches into page ${id + taken}, which belongs elsewhere`);
      seen.fill(1, id, id + pages);
      const bytes = pages === 1 ? first : bytesOf(id, pages);
      return bytes === undefined ? undefined : { header, bytes };
    },
  };
}
