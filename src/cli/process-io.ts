import { writeSync } from "node:fs";
import type { Io } from "./io.ts";

const STDOUT = 1;
const STDERR = 2;

/** The real world. Writes are synchronous: a report must be out, whole, before the process ends. */
export function processIo(): Io {
  return {
    stdout: (text) => writeAll(STDOUT, text),
    stderr: (text) => writeAll(STDERR, text),
    env: process.env,
    stdoutIsTerminal: process.stdout.isTTY === true,
    stdinIsTerminal: process.stdin.isTTY === true,
    columns: process.stdout.columns ?? 100,
    stdin: () => process.stdin,
  };
}

function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      // A pipe that is full for the moment, and a reader such as `head` that has seen enough.
      if (code === "EAGAIN") continue;
      if (code === "EPIPE") return;
      throw error;
    }
  }
}
