import { fstatSync, writeSync } from "node:fs";
import { printable } from "../host/printable.ts";
import { errorCode } from "../host/system-error.ts";
import type { Io } from "./io.ts";

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;

/** Without a screen, lines end where a log viewer still shows them. */
const PLAIN_COLUMNS = 100;

/** The real world. Writes are synchronous: a report must be out, whole, before the process ends. */
export function processIo(): Io {
  const screenColumns =
    columnsFrom(process.env["COLUMNS"]) ?? (isTerminal(STDOUT) ? process.stdout.columns || undefined : undefined);
  return {
    stdout: (text) => writeAll(STDOUT, text),
    // Messages quote files, programs and peers. Nothing on stderr is coloured, so no terminal sequence there is ours.
    stderr: (text) => writeAll(STDERR, withoutControls(text)),
    env: process.env,
    // Asked of the descriptors: touching process.stdout or process.stdin builds a whole stream, a millisecond each.
    stdoutIsTerminal: isTerminal(STDOUT),
    stdinIsTerminal: isTerminal(STDIN),
    columns: screenColumns ?? PLAIN_COLUMNS,
    ...(screenColumns === undefined ? {} : { screenColumns }),
    stdin: () => process.stdin,
  };
}

/** /dev/null and its kin, by Linux's list of devices. */
const MEMORY_DEVICES = 1;

/** Files, pipes and /dev/null are distinguished cheaply; only others have to be asked, by a module that costs 2 ms to load. */
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

/** Shells keep COLUMNS to themselves: where it is in the environment, somebody put it there on purpose. */
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
      // A pipe that is full for the moment, and a reader such as `head` that has seen enough.
      if (code === "EPIPE") return;
      if (code !== "EAGAIN") throw error;
      // The reader, perhaps a pager that waits for a key, needs the processor more than a loop does.
      Atomics.wait(pause, 0, 0, FULL_PIPE_PAUSE_MS);
    }
  }
}
