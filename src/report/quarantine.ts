import { isUndoable } from "../heal/journal/reader.ts";
import type { KeepCode, KeptEntry, Pruned, QuarantineEntry } from "../heal/quarantine/inventory.ts";
import { printable } from "../host/text.ts";
import { podOrTarget, targetOf } from "./history.ts";
import { type Column, plainTable } from "./output.ts";
import { count, shortAge } from "./words.ts";

const KEPT_BECAUSE: Readonly<Record<KeepCode, string>> = {
  unfinished: "an unfinished run or undo needs it; the next unghost heal or undo finishes it",
  lost: "the journal does not know where the original is; name the id to delete it",
  "no-journal-entry": "the journal has no entry for it; name the id to delete it",
};

const COLUMNS: readonly Column[] = [
  { heading: "ID" },
  { heading: "AGE" },
  { heading: "SIZE" },
  { heading: "CONTENT" },
  { heading: "FROM", shorten: { keep: "middle", comfortable: 30, least: 16 } },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 20, least: 10 }, drop: "early" },
  { heading: "UNDO", drop: "late" },
];

export interface QuarantineTable {
  readonly now: Date;
  /** Missing in a pipe, where nothing is truncated. */
  readonly screenColumns?: number;
}

/** One line per entry, oldest first, like history. */
export function renderQuarantine(entries: readonly QuarantineEntry[], table: QuarantineTable): string {
  if (entries.length === 0) return "Quarantine is empty.\n";
  const rows = entries.map((entry) => cellsOf(entry, table.now));
  return `${plainTable(COLUMNS, rows, table.screenColumns).join("\n")}\n`;
}

function cellsOf({ id, since, bytes, record }: QuarantineEntry, now: Date): readonly string[] {
  return [
    id,
    shortAge(since.toISOString(), now.toISOString()),
    sizeInWords(bytes),
    record === undefined ? "unknown" : contentOf(record.action.kind),
    record === undefined ? "-" : podOrTarget(record),
    record?.class ?? "-",
    record !== undefined && isUndoable(record) ? "yes" : "-",
  ];
}

function contentOf(kind: string): string {
  if (kind === "save-logs") return "logs";
  return kind === "quarantine-file" ? "file" : "copy";
}

export function sizeInWords(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

export function bytesOf(entries: readonly QuarantineEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0);
}

export function renderKept(kept: readonly KeptEntry[]): string {
  return kept.map(({ id, keep }) => `Kept ${id}: ${KEPT_BECAUSE[keep]}.\n`).join("");
}

export function renderPruned({ pruned, failed }: Pruned): string {
  const lines = failed.map(({ id, reason }) => `${id} could not be deleted: ${printable(reason)}.`);
  lines.push(`${count(pruned.length, "entry", "entries")} deleted, ${sizeInWords(bytesOf(pruned))} freed.`);
  return `${lines.join("\n")}\n`;
}

/** Plain data for JSON and YAML. */
export function entryDocument({ id, since, files, bytes, record, keep }: QuarantineEntry) {
  return {
    id,
    since: since.toISOString(),
    files,
    bytes,
    ...(record !== undefined && {
      action: record.action.kind,
      from: targetOf(record),
      class: record.class,
      finding: record.finding,
      state: record.state,
    }),
    undoable: record !== undefined && isUndoable(record),
    ...(keep !== undefined && { kept: { code: keep, reason: KEPT_BECAUSE[keep] } }),
  };
}

export function prunedDocument({ pruned, kept, failed }: Pruned, isDryRun: boolean) {
  return {
    apiVersion: "unghost.dev/v1",
    kind: "QuarantinePrune",
    dryRun: isDryRun,
    pruned: pruned.map(entryDocument),
    kept: kept.map(entryDocument),
    failed,
  };
}
