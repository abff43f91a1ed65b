import { createReadStream, statSync } from "node:fs";
import type { FailureClass } from "../../classes/failure-class.ts";
import { classes, classNamed } from "../../classes/index.ts";
import type { Answer } from "../../diagnose/explain/answer.ts";
import { type Group, grouper } from "../../diagnose/explain/group.ts";
import { answersIn, recordReader } from "../../diagnose/explain/lines.ts";
import type { Match } from "../../diagnose/explain/recognise.ts";
import { splitLines } from "../../host/safe-fs.ts";
import { printable } from "../../host/text.ts";
import { renderClass, renderClassList, type Style } from "../../report/explain.ts";
import { renderAnswers } from "../../report/explain-answers.ts";
import type { OutputFormat } from "../../report/output.ts";
import { ExitCode, type Io, print, wantsColour } from "../io.ts";
import { journaldLines } from "../journald.ts";
import { onOff } from "../settings/kinds.ts";
import { readSettings } from "../settings/read.ts";
import { nodeFlags } from "../settings/table.ts";
import { textChunks } from "../text-input.ts";
import { anyArguments, defineCommand } from "./index.ts";

const explainFlags = {
  journal: onOff("Read the logs of kubelet and the runtime from this node's journald"),
  list: onOff("List all failure classes"),
  output: nodeFlags.output,
  verbose: nodeFlags.verbose,
};

export const explainCommand = defineCommand({
  flags: explainFlags,
  positional: anyArguments("TEXT", "Error lines, files, a class, or - for standard input"),
  aliases: { o: "output", v: "verbose" },
  run: async ({ journal = false, list = false, ...flags }, io, ...texts) => {
    const { output, verbose } = await readSettings(flags, io);
    return await runExplain({ texts, journal, list, output, verbose, colour: wantsColour(io) }, io);
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
  /** Why it happens, all steps and what is proven before them, too. */
  readonly verbose: boolean;
}

/** More would not help; programs that need every line can split their input. */
const MAX_RECORDS = 5_000;
/** Everything relevant is within the first megabyte of a line. */
const MAX_LINE_BYTES = 1024 * 1024;
const MAX_FILE_BYTES = 512 * 1024 * 1024;
const BLANK = "Nothing to explain: the input is empty.\n";
const SHORTENED =
  "journalctl left out messages longer than 4 KiB: add --all, or use its plain output (journalctl --no-pager -l).";
const CUT =
  "Only the first 1 MiB of each line was read, and one is longer: put each record on a line of its own (jq -c '.[]').";
const EMPTY_JOURNALD =
  "journald has no lines of kubelet or a container runtime on this node. Give their log as a file, or on stdin with -.";

/** Exits 0 if a class was recognised (or a manual page was printed), 1 if not, 64 for a usage error. */
export async function runExplain(options: ExplainOptions, io: ExplainIo): Promise<ExitCode> {
  const style: Style = { width: io.columns, colour: options.colour };
  if (options.list) {
    await print(options, classes.map(manualEntry), () => renderClassList(classes, io.screenColumns), io);
    return ExitCode.ok;
  }
  const pages = options.texts.map(classNamed).filter((page) => page !== undefined);
  if (pages.length > 0 && pages.length === options.texts.length) {
    const entries = pages.map(manualEntry);
    const data = entries.length === 1 ? entries[0] : entries;
    await print(options, data, () => pages.map((page) => renderClass(page, style)).join("\n"), io);
    return ExitCode.ok;
  }
  const found = await gather(options, io);
  if (found === undefined) return ExitCode.usage;
  const { groups, matches, isNothingRead, isBlank } = found;
  const data = { matches, failures: failuresIn(groups), topics: topicsIn(groups) };
  await print(options, data, () => renderAnswers(groups, { ...style, verbose: options.verbose }), io);
  if (groups.length === 0 && options.output === "table" && !isNothingRead) {
    io.stderr(isBlank ? BLANK : notRecognised(options.texts.join("\n"), found.isCut));
  }
  return groups.some(({ kind }) => kind === "class") ? ExitCode.ok : ExitCode.findings;
}

/** Absent in the output if there are none, like every empty field. */
function failuresIn(groups: readonly Group[]) {
  const failures = groups.flatMap((group) =>
    group.kind === "failure" ? [{ ...group.failure, count: group.count }] : [],
  );
  return failures.length === 0 ? undefined : failures;
}

function topicsIn(groups: readonly Group[]) {
  const topics = groups.flatMap((group) => (group.kind === "topic" ? [{ ...group.topic, count: group.count }] : []));
  return topics.length === 0 ? undefined : topics;
}

interface Found {
  readonly groups: readonly Group[];
  /** What explains most comes first; of one class in the order of the lines. */
  readonly matches: readonly Match[];
  /** Only journald was requested, without a result: the error was reported. */
  readonly isNothingRead: boolean;
  /** There was no text in what was read. */
  readonly isBlank: boolean;
  /** A line was not read to its end. */
  readonly isCut: boolean;
}

async function gather(options: ExplainOptions, io: ExplainIo): Promise<Found | undefined> {
  const readsStdin = options.texts.includes("-") || (options.texts.length === 0 && !options.journal);
  if (readsStdin && io.stdinIsTerminal && !options.texts.includes("-")) {
    io.stderr("Nothing to explain: give an error line, a file, - for stdin, or --journal. See explain --list.\n");
    return undefined;
  }
  const missing = options.texts.find((text) => isPath(text) && !isFile(text));
  if (missing !== undefined) {
    const why = isDirectory(missing) ? "it is a directory" : "it does not exist";
    io.stderr(
      `unghost: cannot read ${printable(missing)}: ${why}. Name a file that can be read, or quote the error line.\n`,
    );
    return undefined;
  }
  const counted = grouper();
  const recognised: (readonly Match[])[] = [];
  let records = 0;
  function keep(found: readonly Answer[]): void {
    for (const answer of found) {
      counted.add(answer);
      if (answer.matches.length === 0) continue;
      records += 1;
      if (options.output !== "table" && records <= MAX_RECORDS) recognised.push(answer.matches.map(detached));
    }
  }
  const words: string[] = [];
  const seen: LinesRead[] = [];
  for (const text of options.texts) {
    if (text === "-") continue;
    if (isFile(text)) seen.push(await readFileLines(text, keep, io));
    else words.push(text);
  }
  keep(explainArguments(words));
  if (readsStdin) seen.push(await readOrReport("standard input", io.stdin(), keep, io));
  let lines = 0;
  if (options.journal) {
    const problem = await journaldLines(io.env, async (chunks) => {
      const journal = await readLines(chunks, keep);
      lines = journal.lines;
      seen.push(journal);
    });
    if (problem !== undefined) io.stderr(`${problem}\n`);
    else if (lines === 0) io.stderr(`${EMPTY_JOURNALD}\n`);
  }
  if (seen.some(({ isShortened }) => isShortened)) io.stderr(`${SHORTENED}\n`);
  const isCut = seen.some((one) => one.isCut);
  if (seen.some((one) => one.isCut && one !== UNREAD)) io.stderr(`${CUT}\n`);
  if (options.output !== "table" && records > MAX_RECORDS) {
    io.stderr(`Showing the first ${MAX_RECORDS} of ${records} recognised records.\n`);
  }
  const isNothingRead = options.journal && lines === 0 && !readsStdin && options.texts.length === 0;
  const isBlank = words.every((word) => word.trim() === "") && seen.every((one) => !one.hasText);
  const groups = counted.groups();
  return { groups, matches: inOrderOf(groups, recognised), isNothingRead, isBlank, isCut };
}

function inOrderOf(groups: readonly Group[], recognised: readonly (readonly Match[])[]): readonly Match[] {
  const ranks = new Map(groups.flatMap((group, rank) => (group.kind === "class" ? [[group.class, rank]] : [])));
  const rankOf = ([first]: readonly Match[]) => ranks.get(first?.class ?? "") ?? groups.length;
  return recognised.toSorted((one, other) => rankOf(one) - rankOf(other)).flat();
}

/** A substring keeps the whole chunk of its file in memory; thousands of them would keep the file. */
function detached(match: Match): Match {
  return structuredClone(match);
}

/** Each argument is its own text; a line typed without quotes arrives as single words and is put together again. */
function explainArguments(texts: readonly string[]): readonly Answer[] {
  const apart = texts.flatMap((text) => answersIn(text));
  if (texts.length < 2 || apart.some(({ matches }) => matches.length > 0)) return apart;
  const joined = answersIn(texts.join(" "));
  return joined.length > 0 ? joined : apart;
}

interface LinesRead {
  readonly lines: number;
  readonly hasText: boolean;
  /** journalctl has left out messages. */
  readonly isShortened: boolean;
  readonly isCut: boolean;
}

/** Nothing is known of what could not be read. */
const UNREAD: LinesRead = { lines: 0, hasText: true, isShortened: false, isCut: true };

async function readFileLines(
  path: string,
  keep: (found: readonly Answer[]) => void,
  io: ExplainIo,
): Promise<LinesRead> {
  const file = await readOrReport(path, createReadStream(path, { end: MAX_FILE_BYTES - 1 }), keep, io);
  if (file !== UNREAD && statSync(path).size > MAX_FILE_BYTES) {
    io.stderr(`Only the first 512 MiB of ${path} were read.\n`);
  }
  return file;
}

async function readOrReport(
  name: string,
  chunks: AsyncIterable<Uint8Array>,
  keep: (found: readonly Answer[]) => void,
  io: ExplainIo,
): Promise<LinesRead> {
  try {
    return await readLines(chunks, keep);
  } catch (error) {
    io.stderr(`Could not read ${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    return UNREAD;
  }
}

/** `journalctl -o json` without --all has null in the place of a message that is longer than 4 KiB. */
const LEFT_OUT = /"MESSAGE" ?: ?null\b/;

async function readLines(
  chunks: AsyncIterable<Uint8Array>,
  keep: (found: readonly Answer[]) => void,
): Promise<LinesRead> {
  const reader = recordReader();
  let lines = 0;
  let hasText = false;
  let isShortened = false;
  let isCut = false;
  for await (const { bytes, isCut: isLong } of splitLines(textChunks(chunks), MAX_LINE_BYTES)) {
    lines += 1;
    const text = Buffer.from(bytes).toString("utf8").replace(/\r$/, "");
    isCut ||= isLong;
    hasText ||= text.trim() !== "";
    isShortened ||= LEFT_OUT.test(text);
    keep(reader.push(text));
  }
  keep(reader.end());
  return { lines, hasText, isShortened, isCut };
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

function isDirectory(text: string): boolean {
  try {
    return statSync(text).isDirectory();
  } catch {
    return false;
  }
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

function notRecognised(text: string, isCut: boolean): string {
  if (/^[a-z0-9]+(?:-[a-z0-9]+)+$/.test(text)) {
    return `There is no failure class “${text}”, and no log line reads like that. See: unghost explain --list\n`;
  }
  const harmless = /sandbox changed, it will be killed/i.test(text);
  return [
    `Not recognised: ${isCut ? "what was read of this text" : "this text"} contains no failing sandbox, network or volume operation.`,
    harmless
      ? "“Pod sandbox changed” alone is normal (unghost explain sandbox-changed-alone); the cause, if any, is in another line."
      : "Give more of the log around it (journalctl --no-pager -l), or see what unghost knows with: unghost explain --list",
    "",
  ].join("\n");
}
