import { join } from "node:path";
import { readBootReport, stepsOf } from "../../boot/boot-report.ts";
import { type History, readHistory } from "../../heal/journal/reader.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { describeError } from "../../host/source.ts";
import { printable } from "../../host/text.ts";
import { historyDocument, renderEntry, renderHistory } from "../../report/history.ts";
import type { OutputFormat } from "../../report/output.ts";
import { entriesOfRun, renderRun } from "../../report/run-timeline.ts";
import { ExitCode, type Io, print } from "../io.ts";
import { positive } from "../settings/kinds.ts";
import { resolveSettings, stateDirOf } from "../settings/read.ts";
import { stateFlags } from "../settings/table.ts";
import { defineCommand, oneArgument } from "./index.ts";

const historyFlags = { ...stateFlags, limit: positive("Show the last N entries", "N") };

export const historyCommand = defineCommand({
  flags: historyFlags,
  positional: oneArgument("ID", "Journal id: show this entry whole; id of a run, or its end: all that the run did"),
  aliases: { o: "output" },
  run: async ({ limit, ...flags }, io, id) => {
    const settings = await resolveSettings(flags, io);
    const place = { stateDir: stateDirOf(settings), uid: process.getuid?.() ?? 0, output: settings.output };
    return await runHistory({ ...place, limit, id }, io);
  },
});

type HistoryIo = Pick<Io, "stdout" | "stderr" | "screenColumns">;

export interface HistoryOptions {
  /** Including the host root, if there is one. */
  readonly stateDir: string;
  readonly uid: number;
  readonly output: OutputFormat;
  /** The last N entries; at least 1. */
  readonly limit?: number;
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
    const history = { ...whole, records: whole.records.slice(options.limit === undefined ? 0 : -options.limit) };
    const lastBoot = readBootReport(join(options.stateDir, "boot.json"));
    const bootWords = lastBoot === undefined ? "" : `\n${stepsOf(lastBoot).map(bootLine).join("\n")}\n`;
    const table = () => renderHistory(history, { ...io, now: new Date() }) + bootWords;
    await print(options, { ...historyDocument(history), lastBoot }, table, io);
    return ExitCode.ok;
  } catch (thrown) {
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
    const where = `in the journal of ${options.stateDir}`;
    io.stderr(`No entry ${printable(id)}, and no run of that id, ${where}. unghost history lists the entries.\n`);
    return ExitCode.usage;
  }
  const document = historyDocument({ records: [record], problems: [] });
  await print(options, document.entries[0], () => renderEntry(record, quarantine), io);
  return ExitCode.ok;
}

function bootLine({ at, mode, outcome, healed, seconds, reason }: ReturnType<typeof stepsOf>[number]): string {
  return `Last boot (${mode} the runtime's start, ${at}): ${outcome}, ${healed} healed in ${seconds}s: ${printable(reason)}`;
}
