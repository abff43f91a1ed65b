import type { Damage } from "./damage.ts";
import { PAGE_HEADER_BYTES, uint64, viewOf } from "./layout.ts";
import type { Meta } from "./meta.ts";
import type { PageReader } from "./page-reader.ts";

const ID_BYTES = 8;
/** The count that does not fit its 16 bits stands in the first place instead. */
const COUNT_IS_FIRST = 0xffff;

/** A page that is in use and also listed as free is overwritten by the next change. */
export function checkFreelist(meta: Meta, pages: PageReader, report: (damage: Damage) => void): void {
  if (meta.freelist === undefined) return;
  const page = pages.read(meta.freelist, ["freelist"]);
  if (page === undefined) return;
  const { header, bytes } = page;
  const view = viewOf(bytes);
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
