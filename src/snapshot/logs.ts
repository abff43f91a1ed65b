import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import type { Distribution } from "../runtime/distributions.ts";
import { resolveOnHost } from "./host-paths.ts";
import { couldConcernSandboxes } from "./log-filter.ts";
import { absent, type Oddity, read, type Source } from "./source.ts";
import { readTail } from "./tail.ts";
import type { LogFacts, LogLine } from "./types.ts";

export interface LogPlaces {
  readonly root: string;
  readonly distribution: Distribution;
  readonly signal: AbortSignal;
}

/** A flood of errors fills this in seconds; what is older than that says nothing new. */
const TAIL_BYTES = 4 * 1024 * 1024;
const JOURNAL_LINES = 5000;
const KEPT_LINES = 2000;

/** The newest lines of the runtime's and kubelet's logs that may concern a sandbox. Never fails a scan: logs only add. */
export async function readLogs({ root, distribution, signal }: LogPlaces): Promise<Source<LogFacts>> {
  const places: string[] = [];
  const lines: LogLine[] = [];
  const oddities: Oddity[] = [];
  for (const file of distribution.logFiles) {
    const tail = readTail(resolveOnHost(root, file, "follow"), TAIL_BYTES);
    if (tail.kind === "absent") continue;
    if (tail.kind === "unreadable") {
      oddities.push({ path: file, reason: tail.reason });
      continue;
    }
    places.push(file);
    lines.push(...concerning(file, tail.text));
  }
  if (existsSync(resolveOnHost(root, "/run/systemd/journal", "follow"))) {
    const journal = await readJournal(root, distribution.units, signal);
    if ("reason" in journal) oddities.push({ path: "journal", reason: journal.reason });
    else {
      places.push("journal");
      lines.push(...concerning("journal", journal.text));
    }
  }
  if (places.length === 0 && oddities.length === 0)
    return absent("there is no log of the runtime that unghost knows of");
  return read({ places, lines: lines.slice(-KEPT_LINES) }, oddities);
}

function concerning(place: string, text: string): LogLine[] {
  return text
    .split("\n")
    .filter(couldConcernSandboxes)
    .slice(-KEPT_LINES)
    .map((line) => ({ place, text: line }));
}

const run = promisify(execFile);

async function readJournal(
  root: string,
  units: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly reason: string }> {
  const where = root === "/" ? [] : ["--directory", resolveOnHost(root, "/var/log/journal", "follow")];
  const args = [...where, "--boot", "--no-pager", "--quiet", "--output=cat", `--lines=${JOURNAL_LINES}`];
  try {
    const { stdout } = await run("journalctl", [...args, ...units.flatMap((unit) => ["--unit", unit])], {
      maxBuffer: 4 * TAIL_BYTES,
      signal,
    });
    return { text: stdout };
  } catch (error) {
    return { reason: `journalctl: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}` };
  }
}
