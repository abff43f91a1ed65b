import type { ByteSource } from "./byte-source.ts";
import type { Damage } from "./damage.ts";
import { PAGE_HEADER_BYTES, type PageHeader, pageHeader } from "./layout.ts";
import type { Meta } from "./meta.ts";

export interface Page {
  readonly header: PageHeader;
  /** The page with its overflow, its header included. */
  readonly bytes: Uint8Array;
}

/** Gives each page once. A page that is asked for twice is damage: no two places of a sound file point to one page. */
export interface PageReader {
  read(id: number, expected: readonly PageHeader["kind"][]): Page | undefined;
  wasRead(id: number): boolean;
}

const FIRST_DATA_PAGE = 2;

export function pageReader(source: ByteSource, meta: Meta, report: (damage: Damage) => void): PageReader {
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
