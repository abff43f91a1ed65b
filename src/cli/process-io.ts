import { fstatSync, writeSync } from "node:fs";
import { errorCode } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { Io } from "./io.ts";

const STDIN = 0;
const STDOUT = 1;
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

export function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      const code = errorCode(error);
      // A pipe that is full for the moment, and a reader such as `head` that has ended.
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
      // The reader, for example a pager that waits for a key, needs the CPU more than a busy loop.
      Atomics.wait(pause, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
}
