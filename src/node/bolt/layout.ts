import type { ByteSource } from "./stable-file.ts";

/**
 * The file format of bbolt, version 2: pages of one size, a B+tree of them for each bucket, two alternating meta pages.
 * Numbers are in the byte order of the machine that wrote it. All of Kubernetes' platforms but s390x are little-endian,
 * and a file of the other order has a wrong magic number.
 */
export const PAGE_HEADER_BYTES = 16;
export const ELEMENT_BYTES = 16;
export const BUCKET_HEADER_BYTES = 16;

export interface PageHeader {
  readonly id: number;
  readonly kind: "branch" | "leaf" | "meta" | "freelist" | "unknown";
  readonly count: number;
  /** The number of further pages that belong to this one. */
  readonly overflow: number;
}

const KIND_OF_FLAGS: ReadonlyMap<number, PageHeader["kind"]> = new Map([
  [0x01, "branch"],
  [0x02, "leaf"],
  [0x04, "meta"],
  [0x10, "freelist"],
]);

/** Needs at least PAGE_HEADER_BYTES. */
export function pageHeader(bytes: Uint8Array): PageHeader {
  const view = dataViewOf(bytes);
  return {
    id: uint64(view, 0),
    kind: KIND_OF_FLAGS.get(view.getUint16(8, true)) ?? "unknown",
    count: view.getUint16(10, true),
    overflow: view.getUint32(12, true),
  };
}

export function dataViewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Inexact above 2^53, where no page and no count of a real file is: such a number is out of range either way. */
export function uint64(view: DataView, offset: number): number {
  return view.getUint32(offset + 4, true) * 2 ** 32 + view.getUint32(offset, true);
}

/** Content of a meta page. */
export interface Meta {
  readonly pageSize: number;
  /** The root page of the outermost bucket. */
  readonly root: number;
  /** Undefined if the writer keeps no list of free pages on disk. */
  readonly freelist: number | undefined;
  /** One more than the highest page in use. */
  readonly highWater: number;
  readonly transaction: bigint;
}

const MAGIC = 0xed0cdaed;
const VERSION = 2;
const META_BYTES = 64;
const CHECKED_BYTES = 56;
const NO_FREELIST = 0xffff_ffff_ffff_ffffn;
const SMALLEST_PAGE = 1024;
const LARGEST_PAGE = 16 * 1024 * 1024;

/**
 * The meta page of the last complete transaction. The two are written in turn, so if a power cut tears one, the other
 * is valid: a single bad one is no damage. If both are bad, what is wrong with each.
 */
export function readMeta(source: ByteSource): Meta | { readonly reasons: readonly [string, string] } {
  const [first, second] = bothMetas(source);
  if (typeof first === "string") return typeof second === "string" ? { reasons: [first, second] } : second;
  return typeof second === "string" || second.transaction < first.transaction ? first : second;
}

/** The transactions of the meta pages: another result means that the file was written meanwhile. */
export function transactionsIn(source: ByteSource): string {
  return bothMetas(source)
    .map((meta) => (typeof meta === "string" ? meta : String(meta.transaction)))
    .join();
}

function bothMetas(source: ByteSource): readonly [Meta | string, Meta | string] {
  const first = metaAt(source, 0);
  return [first, secondMeta(source, typeof first === "string" ? undefined : first.pageSize)];
}

const META_END = PAGE_HEADER_BYTES + META_BYTES;

/** The page size is only in the meta pages; when the first is damaged, the second is searched at every possible offset. */
function secondMeta(source: ByteSource, pageSize: number | undefined): Meta | string {
  if (pageSize !== undefined) return metaAt(source, pageSize);
  for (let offset = SMALLEST_PAGE; offset <= LARGEST_PAGE; offset *= 2) {
    const meta = metaAt(source, offset);
    if (typeof meta !== "string" && meta.pageSize === offset) return meta;
  }
  return "is nowhere to be found";
}

/** A valid meta page, or what is wrong with it. */
function metaAt(source: ByteSource, offset: number): Meta | string {
  if (offset + META_END > source.size) return "lies beyond the end of the file";
  const bytes = source.read(offset + PAGE_HEADER_BYTES, META_BYTES);
  if (!(bytes instanceof Uint8Array)) return bytes.failure;
  const view = dataViewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC) return "is no meta page of a bolt file (wrong magic number)";
  const version = view.getUint32(4, true);
  if (version !== VERSION) return `is of format version ${version} where ${VERSION} is known`;
  if (fnv64a(bytes.subarray(0, CHECKED_BYTES)) !== view.getBigUint64(56, true)) return "has a wrong checksum";
  const pageSize = view.getUint32(8, true);
  if (!isPageSize(pageSize)) return `gives ${pageSize} bytes as the size of a page`;
  return {
    pageSize,
    root: uint64(view, 16),
    freelist: view.getBigUint64(32, true) === NO_FREELIST ? undefined : uint64(view, 32),
    highWater: uint64(view, 40),
    transaction: view.getBigUint64(48, true),
  };
}

function isPageSize(size: number): boolean {
  return size >= SMALLEST_PAGE && size <= LARGEST_PAGE && (size & (size - 1)) === 0;
}

/** Exported for tests that write files. */
export function fnv64a(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

export interface LeafElement {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly isBucket: boolean;
}

export interface BranchElement {
  readonly key: Uint8Array;
  readonly child: number;
}

/** The elements up to the first invalid one, and what is wrong with that one. */
export interface Elements<T> {
  readonly elements: readonly T[];
  readonly problem?: string;
}

const BUCKET_FLAG = 0x01;

export function leafElements(page: Uint8Array, count: number): Elements<LeafElement> {
  return elementsOf(page, count, (view, at) => {
    const keyBytes = view.getUint32(at + 8, true);
    return {
      position: view.getUint32(at + 4, true),
      keyBytes,
      valueBytes: view.getUint32(at + 12, true),
      make: (key, value) => ({ key, value, isBucket: (view.getUint32(at, true) & BUCKET_FLAG) !== 0 }),
    };
  });
}

export function branchElements(page: Uint8Array, count: number): Elements<BranchElement> {
  return elementsOf(page, count, (view, at) => ({
    position: view.getUint32(at, true),
    keyBytes: view.getUint32(at + 4, true),
    valueBytes: 0,
    make: (key) => ({ key, child: uint64(view, at + 8) }),
  }));
}

interface Described<T> {
  /** Relative to the element's own header. */
  readonly position: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly make: (key: Uint8Array, value: Uint8Array) => T;
}

/**
 * bbolt writes keys in ascending order, and their bytes consecutively behind all headers. Checking both ensures that a
 * page never yields more bytes than it has.
 */
function elementsOf<T>(
  page: Uint8Array,
  count: number,
  describe: (view: DataView, at: number) => Described<T>,
): Elements<T> {
  const elements: T[] = [];
  let free = PAGE_HEADER_BYTES + count * ELEMENT_BYTES;
  if (free > page.length) return { elements, problem: `claims ${count} elements, more than fit into it` };
  const view = dataViewOf(page);
  let previous: Uint8Array | undefined;
  for (let index = 0; index < count; index += 1) {
    const at = PAGE_HEADER_BYTES + index * ELEMENT_BYTES;
    const { position, keyBytes, valueBytes, make } = describe(view, at);
    const start = at + position;
    const end = start + keyBytes + valueBytes;
    if (start < free || end > page.length) {
      return { elements, problem: `has element ${index} of ${count} where it cannot be` };
    }
    const key = page.subarray(start, start + keyBytes);
    if (previous !== undefined && Buffer.compare(previous, key) >= 0) {
      return { elements, problem: `has its keys out of order at element ${index} of ${count}` };
    }
    elements.push(make(key, page.subarray(start + keyBytes, end)));
    previous = key;
    free = end;
  }
  return { elements };
}
