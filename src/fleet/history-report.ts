import { printable } from "../host/text.ts";
import { type Column, layOut } from "../report/output.ts";
import type { Fleet } from "./fleet-nodes.ts";
import type { Printable } from "./output.ts";

const COLUMNS: readonly Column[] = [
  { heading: "NODE", shorten: { keep: "middle", comfortable: 40, least: 16 } },
  { heading: "TIME" },
  { heading: "BY", drop: "late" },
  { heading: "RESULT" },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 40, least: 12 } },
  { heading: "SUBJECT", shorten: { keep: "middle", comfortable: 40, least: 12 } },
  { heading: "RUN", drop: "late" },
];

/** The last heals of each node, the newest first, as its agent reports them from the journal. */
export function printableHistory({ nodes, problems }: Fleet, width: number, noHeaders: boolean): Printable {
  const items = nodes.flatMap(({ name, report }) => (report?.heals ?? []).map((heal) => ({ node: name, ...heal })));
  return {
    document: { apiVersion: "unghost.dev/v1", kind: "FleetHistory", items, problems } as Printable["document"],
    names: [...new Set(items.map(({ node }) => `node/${node}`))],
    table: (isWide) => {
      const rows = items.map(({ node, at, by = "-", outcome, class: id, subject, run }) =>
        [node, at, by, outcome, id, subject, run].map((text) => ({ text: printable(text) })),
      );
      if (rows.length === 0) return ["no heals reported"];
      return layOut(COLUMNS, rows, { width: isWide ? Number.POSITIVE_INFINITY : width, headings: !noHeaders });
    },
  };
}
