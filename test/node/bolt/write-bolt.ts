import { fnv64a } from "../../../src/node/bolt/layout.ts";

/** A bucket to write: texts and bytes are values, trees are buckets. */
export interface Tree {
  readonly [key: string]: string | Uint8Array | Tree;
}

export interface WriteOptions {
  readonly pageSize?: number;
  readonly transaction?: bigint;
  /** Unused pages at the end. */
  readonly free?: number;
}

const HEADER = 16;
const ELEMENT = 16;
const BRANCH = 1;
const LEAF = 2;
const META = 4;
const FREELIST = 16;
const FREELIST_PAGE = 2;

interface Item {
  readonly key: Buffer;
  readonly value: Buffer;
  readonly flags: number;
}

/** Writes a whole bolt file in bbolt's layout. */
export function writeBolt(tree: Tree, options: WriteOptions = {}): Buffer {
  const { pageSize = 4096, transaction = 7n, free = 0 } = options;
  const data: Buffer[] = [];
  let next = FREELIST_PAGE + 1;

  /** Assigns a page number, and as many pages as needed. */
  function place(kind: number, count: number, body: Buffer): number {
    const id = next;
    const pages = Math.ceil((HEADER + body.length) / pageSize);
    const bytes = Buffer.alloc(pages * pageSize);
    header(id, kind, count, pages - 1).copy(bytes);
    body.copy(bytes, HEADER);
    data.push(bytes);
    next += pages;
    return id;
  }

  function bucketRoot(bucket: Tree): number {
    const items = sorted(bucket).map(([key, value]) => item(key, value));
    let level = pack(items).map((group) => ({
      key: group[0]?.key ?? Buffer.alloc(0),
      id: place(LEAF, group.length, leafBody(group)),
    }));
    while (level.length > 1) {
      const perBranch = Math.floor((pageSize - HEADER) / (ELEMENT + longestKey(level)));
      level = chunks(level, Math.max(2, perBranch)).map((group) => ({
        key: group[0]?.key ?? Buffer.alloc(0),
        id: place(BRANCH, group.length, branchBody(group)),
      }));
    }
    return level[0]?.id ?? place(LEAF, 0, Buffer.alloc(0));
  }

  function item(key: string, value: Tree[string]): Item {
    if (typeof value === "string" || value instanceof Uint8Array) {
      return { key: Buffer.from(key), value: Buffer.from(value), flags: 0 };
    }
    const inline = inlineBucket(value);
    return { key: Buffer.from(key), value: inline ?? bucketHeader(bucketRoot(value)), flags: 1 };
  }

  function inlineBucket(bucket: Tree): Buffer | undefined {
    const entries = sorted(bucket);
    const items = entries.flatMap(([key, value]) =>
      typeof value === "string" || value instanceof Uint8Array
        ? [{ key: Buffer.from(key), value: Buffer.from(value), flags: 0 }]
        : [],
    );
    const body = leafBody(items);
    if (items.length < entries.length || HEADER + body.length > pageSize / 4) return undefined;
    return Buffer.concat([bucketHeader(0), header(0, LEAF, items.length, 0), body]);
  }

  /** As many as fit into a page; one that is too large overflows. */
  function pack(items: readonly Item[]): readonly (readonly Item[])[] {
    const groups: Item[][] = [];
    let room = 0;
    for (const one of items) {
      const size = ELEMENT + one.key.length + one.value.length;
      if (groups.length === 0 || size > room) {
        groups.push([]);
        room = pageSize - HEADER;
      }
      groups.at(-1)?.push(one);
      room -= size;
    }
    return groups;
  }

  const root = bucketRoot(tree);
  const freeIds = Array.from({ length: free }, (_, index) => next + index);
  const freelist = Buffer.alloc(pageSize);
  header(FREELIST_PAGE, FREELIST, freeIds.length, 0).copy(freelist);
  freeIds.forEach((id, index) => freelist.writeBigUInt64LE(BigInt(id), HEADER + index * 8));
  const highWater = next + free;
  const metas = [0, 1].map((id) => {
    const page = Buffer.alloc(pageSize);
    header(id, META, 0, 0).copy(page);
    const parity = transaction % 2n === BigInt(id);
    metaBytes({ pageSize, root, highWater, transaction: parity ? transaction : transaction - 1n }).copy(page, HEADER);
    return page;
  });
  return Buffer.concat([...metas, freelist, ...data, Buffer.alloc(free * pageSize)]);
}

/** The 64 bytes of a meta page after its header, with a valid checksum. */
export function metaBytes(meta: {
  readonly pageSize: number;
  readonly root: number;
  readonly highWater: number;
  readonly transaction: bigint;
}): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.writeUInt32LE(0xed0cdaed, 0);
  bytes.writeUInt32LE(2, 4);
  bytes.writeUInt32LE(meta.pageSize, 8);
  bytes.writeBigUInt64LE(BigInt(meta.root), 16);
  bytes.writeBigUInt64LE(BigInt(FREELIST_PAGE), 32);
  bytes.writeBigUInt64LE(BigInt(meta.highWater), 40);
  bytes.writeBigUInt64LE(meta.transaction, 48);
  bytes.writeBigUInt64LE(fnv64a(bytes.subarray(0, 56)), 56);
  return bytes;
}

function header(id: number, kind: number, count: number, overflow: number): Buffer {
  const bytes = Buffer.alloc(HEADER);
  bytes.writeBigUInt64LE(BigInt(id), 0);
  bytes.writeUInt16LE(kind, 8);
  bytes.writeUInt16LE(count, 10);
  bytes.writeUInt32LE(overflow, 12);
  return bytes;
}

function bucketHeader(root: number): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64LE(BigInt(root), 0);
  return bytes;
}

function leafBody(items: readonly Item[]): Buffer {
  let free = items.length * ELEMENT;
  const elements = items.map(({ key, value, flags }, index) => {
    const bytes = Buffer.alloc(ELEMENT);
    bytes.writeUInt32LE(flags, 0);
    bytes.writeUInt32LE(free - index * ELEMENT, 4);
    bytes.writeUInt32LE(key.length, 8);
    bytes.writeUInt32LE(value.length, 12);
    free += key.length + value.length;
    return bytes;
  });
  return Buffer.concat([...elements, ...items.flatMap(({ key, value }) => [key, value])]);
}

function branchBody(children: readonly { readonly key: Buffer; readonly id: number }[]): Buffer {
  let free = children.length * ELEMENT;
  const elements = children.map(({ key, id }, index) => {
    const bytes = Buffer.alloc(ELEMENT);
    bytes.writeUInt32LE(free - index * ELEMENT, 0);
    bytes.writeUInt32LE(key.length, 4);
    bytes.writeBigUInt64LE(BigInt(id), 8);
    free += key.length;
    return bytes;
  });
  return Buffer.concat([...elements, ...children.map(({ key }) => key)]);
}

function sorted(bucket: Tree): readonly (readonly [string, Tree[string]])[] {
  return Object.entries(bucket).toSorted(([one], [other]) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

function longestKey(level: readonly { readonly key: Buffer }[]): number {
  return Math.max(...level.map(({ key }) => key.length));
}

function chunks<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
