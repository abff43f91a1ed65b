import { setTimeout as sleep } from "node:timers/promises";
import type { ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";

const CLEAR_SCREEN = "\u001B[H\u001B[2J\u001B[3J";

interface WatchOptions {
  readonly intervalMs: number;
  /** A line with the time above each report; documents for programs stay clean. */
  readonly stamped: boolean;
  readonly passes?: number;
}

/**
 * Scans again and again until it is interrupted. A terminal is redrawn; elsewhere a report is appended when it differs
 * from the one before. `passes` ends it after so many scans, for tests.
 */
export async function watchScan(
  scan: (io: Io) => Promise<ExitCode>,
  { intervalMs, stamped, passes = Number.POSITIVE_INFINITY }: WatchOptions,
  io: Io,
): Promise<ExitCode> {
  let before: string | undefined;
  for (let pass = 1; ; pass++) {
    const printed: string[] = [];
    const code = await scan({ ...io, stdout: (text) => printed.push(text) });
    const text = printed.join("");
    const stamp = stamped ? `${new Date().toISOString()}\n` : "";
    if (io.stdoutIsTerminal) io.stdout(CLEAR_SCREEN + stamp + text);
    else if (text !== before) io.stdout(stamp + text);
    before = text;
    if (pass >= passes) return code;
    await sleep(intervalMs);
  }
}
