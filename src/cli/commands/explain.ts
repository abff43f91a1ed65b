import { createReadStream, statSync } from "node:fs";
import type { FailureClass } from "../../classes/failure-class.ts";
import { classById, classes } from "../../classes/index.ts";
import { type Group, grouper } from "../../diagnose/explain/group.ts";
import { explainText, recordReader } from "../../diagnose/explain/lines.ts";
import type { Match } from "../../diagnose/explain/recognise.ts";
import { splitLines } from "../../host/safe-fs.ts";
import { printable } from "../../host/text.ts";
import { renderClass, renderClassList, renderGroups, type Style } from "../../report/explain.ts";
import type { OutputFormat } from "../../report/output.ts";
import { ExitCode, type Io, print, wantsColour } from "../io.ts";
import { journaldLines } from "../journald.ts";
import { onOff } from "../settings/kinds.ts";
import { resolveSettings } from "../settings/read.ts";
import { nodeFlags } from "../settings/table.ts";
import { anyArguments, defineCommand } from "./index.ts";

const explainFlags = {
  journal: onOff("Read the logs of kubelet and the runtime from this node's journald"),
  list: onOff("List all failure classes"),
  output: nodeFlags.output,
};

export const explainCommand = defineCommand({
  flags: explainFlags,
  positional: anyArguments("TEXT", "Error lines, files, a class, or - for standard input"),
  aliases: { o: "output" },
  run: async ({ journal = false, list = false, ...flags }, io, ...texts) => {
    const { output } = await resolveSettings(flags, io);
    return await runExplain({ texts, journal, list, output, colour: wantsColour(io) }, io);
  },
});

export type ExplainIo = Pick<
  Io,
  "stdout" | "stderr" | "env" | "stdinIsTerminal" | "columns" | "screenColumns" | "stdin"
>;

export interface ExplainOptions {
  /** Error lines, files, class ids, or `-` for stdin, in any mixture. */
  readonly texts: readonly string[];
  readonly journal: boolean;
  readonly list: boolean;
  readonly output: OutputFormat;
  readonly colour: boolean;
}

/** More would not help; programs that need every line can split their input. */
const MAX_RECORDS = 5_000;
/** Everything relevant is within the first megabyte of a line. */
const MAX_LINE_BYTES = 1024 * 1024;
const MAX_FILE_BYTES = 512 * 1024 * 1024;
const EMPTY_JOURNALD =
  "journald has no lines of kubelet or a container runtime on this node. Give their log as a file, or on stdin with -.";

/** Exits 0 if something was recognised (or a manual page was printed), 1 if not, 64 for a usage error. */
export async function runExplain(options: ExplainOptions, io: ExplainIo): Promise<ExitCode> {
  const style: Style = { width: io.columns, colour: options.colour };
  if (options.list) {
    await print(options, classes.map(manualEntry), () => renderClassList(classes, io.screenColumns), io);
    return ExitCode.ok;
  }
  const pages = options.texts.map(classByIdOrCode).filter((page) => page !== undefined);
  if (pages.length > 0 && pages.length === options.texts.length) {
    const entries = pages.map(manualEntry);
    const data = entries.length === 1 ? entries[0] : entries;
    await print(options, data, () => pages.map((page) => renderClass(page, style)).join("\n"), io);
    return ExitCode.ok;
  }
  const found = await gather(options, io);
  if (found === undefined) return ExitCode.usage;
  const { groups, matches, records, isNothingRead } = found;
  await print(options, { matches }, () => renderGroups(groups, style), io);
  if (records === 0 && options.output === "table" && !isNothingRead) io.stderr(notRecognised(options.texts.join("\n")));
  return records > 0 ? ExitCode.ok : ExitCode.findings;
}

interface Found {
  readonly groups: readonly Group[];
  readonly matches: readonly Match[];
  readonly records: number;
  /** Only journald was requested, without a result: the error was reported. */
  readonly isNothingRead: boolean;
}

async function gather(options: ExplainOptions, io: ExplainIo): Promise<Found | undefined> {
  const readsStdin = options.texts.includes("-") || (options.texts.length === 0 && !options.journal);
  if (readsStdin && io.stdinIsTerminal && !options.texts.includes("-")) {
    io.stderr("Nothing to explain: give an error line, a file, - for stdin, or --journal. See explain --list.\n");
    return undefined;
  }
  const missing = options.texts.find((text) => isPath(text) && !isFile(text));
  if (missing !== undefined) {
    io.stderr(`There is no file ${printable(missing)}. Name a file that can be read, or quote the error line.\n`);
    return undefined;
  }
  const counted = grouper();
  const matches: Match[] = [];
  let records = 0;
  function keep(found: readonly (readonly Match[])[]): void {
    for (const record of found) {
      records += 1;
      counted.add(record);
      if (options.output !== "table" && records <= MAX_RECORDS) matches.push(...record.map(detached));
    }
  }
  const words: string[] = [];
  for (const text of options.texts) {
    if (text === "-") continue;
    if (isFile(text)) await readFileLines(text, keep, io);
    else words.push(text);
  }
  keep(explainArguments(words));
  if (readsStdin) await readLines(io.stdin(), keep);
  let lines = 0;
  if (options.journal) {
    const problem = await journaldLines(io.env, async (chunks) => {
      lines = await readLines(chunks, keep);
    });
    if (problem !== undefined) io.stderr(`${problem}\n`);
    else if (lines === 0) io.stderr(`${EMPTY_JOURNALD}\n`);
  }
  if (options.output !== "table" && records > MAX_RECORDS) {
    io.stderr(`Showing the first ${MAX_RECORDS} of ${records} recognised records.\n`);
  }
  const isNothingRead = options.journal && lines === 0 && !readsStdin && options.texts.length === 0;
  return { groups: counted.groups(), matches, records, isNothingRead };
}

/** A substring keeps the whole chunk of its file in memory; thousands of them would keep the file. */
function detached(match: Match): Match {
  return structuredClone(match);
}

/** Each argument is its own text; a line typed without quotes arrives as single words and is put together again. */
function explainArguments(texts: readonly string[]): readonly (readonly Match[])[] {
  const apart = texts.flatMap((text) => explainText(text));
  if (apart.length > 0 || texts.length < 2) return apart;
  return explainText(texts.join(" "));
}

async function readFileLines(
  path: string,
  keep: (found: readonly (readonly Match[])[]) => void,
  io: ExplainIo,
): Promise<void> {
  try {
    await readLines(createReadStream(path, { end: MAX_FILE_BYTES - 1 }), keep);
  } catch (error) {
    io.stderr(`Could not read ${path}: ${error instanceof Error ? error.message : String(error)}\n`);
    return;
  }
  if (statSync(path).size > MAX_FILE_BYTES) io.stderr(`Only the first 512 MiB of ${path} were read.\n`);
}

async function readLines(
  chunks: AsyncIterable<Uint8Array>,
  keep: (found: readonly (readonly Match[])[]) => void,
): Promise<number> {
  const reader = recordReader();
  let lines = 0;
  for await (const { bytes } of splitLines(chunks, MAX_LINE_BYTES)) {
    lines += 1;
    keep(reader.push(Buffer.from(bytes).toString("utf8").replace(/\r$/, "")));
  }
  keep(reader.end());
  return lines;
}

/** No error line is a single word that starts or ends like this. */
function isPath(text: string): boolean {
  return /^(?:\.{0,2}|~)\/\S+$|^\S+\.(?:log|txt|out|json|gz)(?:\.\d+)?$/.test(text);
}

/** An error line is no valid file name: too long, or with a NUL. What cannot be read as a file is treated as text. */
function isFile(text: string): boolean {
  try {
    return statSync(text).isFile();
  } catch {
    return false;
  }
}

/** Short codes like B1 and A7 are accepted, too. */
function classByIdOrCode(text: string): FailureClass | undefined {
  return classById(text) ?? classes.find((one) => one.code === text.toUpperCase());
}

function manualEntry(one: FailureClass) {
  const { id, code, title, explanation, mechanism, inSnapshot, versions, treatment, byHand, danger, links } = one;
  const signatures = one.signatures().map(({ text, level = "cause", confidence }) => ({ text, level, confidence }));
  return {
    id,
    code,
    title,
    explanation,
    mechanism,
    signatures,
    inSnapshot: { visible: "how" in inSnapshot, ...inSnapshot },
    versions,
    treatment,
    byHand,
    danger,
    links,
  };
}

function notRecognised(text: string): string {
  if (/^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(text)) {
    return `There is no failure class “${text}”, and no log line reads like that. See: unghost explain --list\n`;
  }
  const harmless = /sandbox changed, it will be killed/i.test(text);
  return [
    "Not recognised: nothing in this text points at a pod sandbox that is stuck.",
    harmless
      ? "“Pod sandbox changed” alone is normal (unghost explain sandbox-changed-alone); the cause, if any, is in another line."
      : "Give more of the log around it, or see what unghost knows with: unghost explain --list",
    "",
  ].join("\n");
}
