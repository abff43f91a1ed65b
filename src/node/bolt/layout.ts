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
  readonly kind: PageKind;
  readonly count: number;
  /** The number of further pages that belong to this one. */
  readonly overflow: number;
}

export type PageKind = "branch" | "leaf" | "meta" | "freelist" | "unknown";

const KIND_OF_FLAGS: ReadonlyMap<number, PageKind> = new Map([
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

/** One offset at which the file is not valid. */
export interface Damage {
  readonly page: number;
  readonly reason: string;
}

export function damageInWords({ page, reason }: Damage): string {
  return `page ${page} ${reason}`;
}
