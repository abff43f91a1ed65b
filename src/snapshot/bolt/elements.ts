import { dataViewOf, ELEMENT_BYTES, PAGE_HEADER_BYTES, uint64 } from "./layout.ts";

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
