import { once } from "node:events";
import { fstatSync, writeSync } from "node:fs";
import { errorCode } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { formatDocument, type OutputFormat } from "../report/output.ts";

/** The environment of a command, injected by tests. */
export interface Io {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdoutIsTerminal: boolean;
  readonly stdinIsTerminal: boolean;
  readonly columns: number;
  /** Missing in a pipe, where nothing may be truncated to a width. */
  readonly screenColumns?: number;
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/**
 * Colour only on a terminal, unless NO_COLOR is set (no-color.org). FORCE_COLOR is for programs that show our output on
 * their own terminal.
 */
export function wantsColour(io: Pick<Io, "env" | "stdoutIsTerminal">): boolean {
  if (io.env["NO_COLOR"]) return false;
  const forced = io.env["FORCE_COLOR"];
  if (forced) return forced !== "0";
  return io.stdoutIsTerminal && io.env["TERM"] !== "dumb";
}

/** Prints a result in the requested format. */
export async function print(
  { output }: { readonly output: OutputFormat },
  document: unknown,
  table: () => string,
  io: Pick<Io, "stdout">,
): Promise<void> {
  io.stdout(output === "table" ? table() : await formatDocument(document, output));
}

/** Users script against these. 0, 1 and 2 are also the protocol of a node-problem-detector plugin: frozen. */
export const ExitCode = {
  /** scan: healthy. heal: nothing left. explain: recognised. */
  ok: 0,
  /** scan: findings, or failures that kubelet reports (degraded). heal: something left. explain: not recognised. */
  findings: 1,
  /** The scan failed, or its result is unknown. */
  unknown: 2,
  /** Refused: needs --yes, paused, or a guard. agent: another agent runs on this node. */
  refused: 3,
  usage: 64,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** Asks once; anything but a clear yes is a no, including the end of the input. */
export async function askYesNo(question: string, io: Io): Promise<"yes" | "no"> {
  const { createInterface } = process.getBuiltinModule("node:readline/promises");
  // The terminal's own line editing is enough, and keeps what was typed before the question.
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: false });
  try {
    const closed = once(lines, "close").then(() => "");
    const answer = await Promise.race([lines.question(`${question} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim()) ? "yes" : "no";
  } finally {
    lines.close();
    io.stdout("");
  }
}

const STDIN = 0;
export const STDOUT = 1;
const STDERR = 2;

/** The line width without a terminal, for log viewers. */
const PLAIN_COLUMNS = 100;

/** The real process. Writes are synchronous, because a report must be complete before the process ends. */
export function processIo(): Io {
  const screenColumns =
    columnsFrom(process.env["COLUMNS"]) ?? (isTerminal(STDOUT) ? process.stdout.columns || undefined : undefined);
  return {
    stdout: (text) => writeAll(STDOUT, text),
    // Messages quote files, programs and peers. Nothing on stderr is coloured, so terminal sequences there are never
    // ours.
    stderr: (text) => writeAll(STDERR, withoutControls(text)),
    env: process.env,
    // Checks the descriptors: accessing process.stdout or process.stdin creates a stream, which takes a millisecond
    // each.
    stdoutIsTerminal: isTerminal(STDOUT),
    stdinIsTerminal: isTerminal(STDIN),
    columns: screenColumns ?? PLAIN_COLUMNS,
    screenColumns,
    stdin: () => process.stdin,
  };
}

/** /dev/null and similar devices, by Linux's device list. */
const MEMORY_DEVICES = 1;

/** Files, pipes and /dev/null are recognised cheaply; only others need a module that takes 2 ms to load. */
function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev >> 8 === MEMORY_DEVICES) return false;
    return process.getBuiltinModule("node:tty").isatty(fd);
  } catch {
    // Closed by the parent process.
    return false;
  }
}

/** Shells do not export COLUMNS: if it is in the environment, it was set on purpose. */
function columnsFrom(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,3}$/.test(text) ? Number(text) : undefined;
}

function withoutControls(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

const FULL_PIPE_PAUSE_MS = 5;
const pause = new Int32Array(new SharedArrayBuffer(4));

export function writeAll(fd: number, content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      const code = errorCode(error);
      // A reader such as `head` that has ended; EOF is Windows' name for it. EAGAIN: a pipe that is full for the moment.
      if (code === "EPIPE" || code === "EOF") return;
      if (code !== "EAGAIN") throw error;
      // The reader, for example a pager that waits for a key, needs the CPU more than a busy loop.
      Atomics.wait(pause, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
}
