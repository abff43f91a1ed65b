import { join } from "node:path";
import { readBootReport, stepsOf } from "../../boot/boot-report.ts";
import { type History, type HistoryRecord, readHistory } from "../../heal/journal/reader.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { describeError } from "../../host/source.ts";
import { printable } from "../../host/text.ts";
import { entryLines, historyDocument, outcomeOf, renderEntry, renderHistory } from "../../report/history.ts";
import { byRun, runLines } from "../../report/history-runs.ts";
import type { OutputFormat } from "../../report/output.ts";
import { entriesOfRun, renderRun } from "../../report/run-timeline.ts";
import { ExitCode, type Io, print } from "../io.ts";
import { noSuchEntry, onOff, parseDurationMs, positive, SettingsError, text } from "../settings/kinds.ts";
import { resolveSettings, stateDirOf } from "../settings/read.ts";
import { type FlagValues, nodeFlags, stateFlags } from "../settings/table.ts";
import { classIds } from "../targets.ts";
import { defineCommand, oneArgument } from "./index.ts";

const historyFlags = {
  ...stateFlags,
  verbose: nodeFlags.verbose,
  since: text("Only what started after this: a duration like 24h, or a time like 2026-03-01T12:00:00Z", "WHEN"),
  pod: text("Only entries of this pod", "[NAMESPACE/]NAME"),
  class: text("Only entries of this failure class", "CLASS"),
  failed: onOff("Only entries that failed, were refused or were interrupted"),
  limit: positive("Show the last N runs; with -v or another output format, entries", "N"),
};
type HistoryFlags = FlagValues<typeof historyFlags>;

export const historyCommand = defineCommand({
  flags: historyFlags,
  positional: oneArgument("ID", "Journal id: show this entry whole; id of a run, or its end: all that the run did"),
  aliases: { o: "output", v: "verbose" },
  run: async ({ limit, since, pod, class: failureClass, failed, ...flags }, io, id) => {
    const isWanted = await historyFilter({ since, pod, class: failureClass, failed });
    const settings = await resolveSettings(flags, io);
    const { output, verbose } = settings;
    const place = { stateDir: stateDirOf(settings), uid: process.getuid?.() ?? 0, output, verbose };
    return await runHistory({ ...place, limit, id, isWanted }, io);
  },
});

type Filter = (record: HistoryRecord) => boolean;

/** Throws a SettingsError for what names nothing. */
export async function historyFilter(
  flags: Partial<Pick<HistoryFlags, "since" | "pod" | "class" | "failed">>,
): Promise<Filter> {
  const { since, pod, failed } = flags;
  const from = since === undefined ? Number.NEGATIVE_INFINITY : timeOf(since);
  const ofClass = flags.class === undefined ? undefined : (await classIds([flags.class]))[0];
  return (record) => {
    const { namespace = "", name = "" } = record.subject.pod ?? {};
    return (
      Date.parse(record.at) >= from &&
      (pod === undefined || pod === name || pod === `${namespace}/${name}`) &&
      (ofClass === undefined || record.class === ofClass) &&
      (failed !== true || !["done", "undone", "pruned"].includes(outcomeOf(record)))
    );
  };
}

function timeOf(since: string): number {
  const ago = parseDurationMs(since);
  const at = ago === undefined ? Date.parse(since) : Date.now() - ago;
  if (Number.isNaN(at)) {
    throw new SettingsError(`--since: "${since}" is neither a duration like 24h nor a time like 2026-03-01T12:00:00Z`);
  }
  return at;
}

type HistoryIo = Pick<Io, "stdout" | "stderr" | "screenColumns">;

export interface HistoryOptions {
  /** Including the host root, if there is one. */
  readonly stateDir: string;
  readonly uid: number;
  readonly output: OutputFormat;
  /** One line for each entry, and not for each run. */
  readonly verbose?: boolean;
  /** The last N runs or entries; at least 1. */
  readonly limit?: number;
  readonly isWanted?: Filter;
  /** Only this entry, complete. */
  readonly id?: string;
}

/** Shows what unghost did on this node. Read-only; works beside a running heal. */
export async function runHistory(options: HistoryOptions, io: HistoryIo): Promise<ExitCode> {
  const stateDir = await findStateDir(options.stateDir, options.uid);
  if (!stateDir.ok) {
    io.stderr(`${stateDir.refusal.message}\n${stateDir.refusal.next}\n`);
    return ExitCode.unknown;
  }
  try {
    const none = { records: [], problems: [] };
    const whole = stateDir.value === undefined ? none : await readHistory(stateDir.value.journal);
    if (options.id !== undefined) return await showEntry(whole, options.id, options, io);
    const { limit, verbose = false, isWanted = () => true } = options;
    const wanted = whole.records.filter(isWanted);
    const last = <Item>(items: readonly Item[]): readonly Item[] => items.slice(limit === undefined ? 0 : -limit);
    const inRuns = options.output === "table" && !verbose;
    const history = { ...whole, records: inRuns ? last(byRun(wanted)).flat() : last(wanted) };
    const lastBoot = readBootReport(join(options.stateDir, "boot.json"));
    const bootWords = lastBoot === undefined ? "" : `\n${stepsOf(lastBoot).map(bootLine).join("\n")}\n`;
    const { screenColumns } = io;
    const lines = inRuns
      ? runLines(byRun(history.records), new Date(), screenColumns)
      : entryLines(history.records, new Date(), screenColumns);
    const table = () => renderHistory(history, { lines, inRuns, all: whole.records.length }) + bootWords;
    await print(options, { ...historyDocument(history), lastBoot }, table, io);
    return ExitCode.ok;
  } catch (thrown) {
    if (thrown instanceof SettingsError) throw thrown;
    io.stderr(`The journal in ${options.stateDir} cannot be read: ${describeError(thrown)}.\n`);
    return ExitCode.unknown;
  }
}

async function showEntry({ records }: History, id: string, options: HistoryOptions, io: HistoryIo): Promise<ExitCode> {
  const quarantine = join(options.stateDir, "quarantine");
  const record = records.find((one) => one.id === id);
  if (record === undefined) {
    const ofRun = entriesOfRun(records, id);
    if (ofRun.length > 0) {
      const run = historyDocument({ records: ofRun, problems: [] });
      await print(options, run, () => renderRun(ofRun, quarantine), io);
      return ExitCode.ok;
    }
    throw noSuchEntry(id, "the journal", "history");
  }
  const document = historyDocument({ records: [record], problems: [] });
  await print(options, document.entries[0], () => renderEntry(record, quarantine), io);
  return ExitCode.ok;
}

function bootLine({ at, mode, outcome, healed, seconds, reason }: ReturnType<typeof stepsOf>[number]): string {
  return `Last boot (${mode} the runtime's start, ${at}): ${outcome}, ${healed} healed in ${seconds}s: ${printable(reason)}`;
}
