import { join } from "node:path";
import * as v from "valibot";
import { readStateDocument } from "../heal/state/state-dir.ts";
import { valueOr } from "../host/source.ts";
import { readBoot } from "../node/process-table.ts";
import { EARLIEST_PLAUSIBLE } from "../plan/policy.ts";
import { AttemptBook, type Ledger, type LedgerEntry, MAX_ATTEMPTS, type Outlook } from "./policy/attempts.ts";
import { keepFile, type StatePlace, writeStateFile } from "./state/kept-file.ts";

/** Enough for about a thousand subjects with one attempt. The oldest are dropped if that is not enough. */
const MAX_BYTES = 256 * 1024;

/**
 * Consecutive heals would each write the whole file. The first is written at once, because it may be the one that kills
 * the agent.
 */
const WRITE_EVERY_MS = 5000;

const duration = v.pipe(v.number(), v.finite(), v.minValue(0));
/** A time that another process can interpret, in this boot or in a later one. */
const Stamp = v.object({
  at: v.pipe(
    v.string(),
    v.transform((text) => new Date(text)),
    v.date(),
  ),
  /** Missing if the node's /proc is unreadable. */
  boot: v.optional(v.object({ id: v.string(), uptimeSeconds: duration })),
});
export type Stamp = Readonly<v.InferOutput<typeof Stamp>>;

const AttemptsFile = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("Attempts"),
  written: Stamp,
  subjects: v.array(
    v.object({
      finding: v.string(),
      class: v.string(),
      /** When it is tried again; only for readers. */
      nextTryAt: v.optional(v.string()),
      givenUp: v.optional(v.boolean()),
      attempts: v.pipe(
        v.array(
          v.object({
            /** Relative to the time of writing, so that a reader needs only one clock. */
            secondsBefore: duration,
            outcome: v.picklist(["healed", "skipped", "failed", "refused", "interrupted"]),
            reason: v.exactOptional(v.string()),
            subject: v.string(),
          }),
        ),
        v.maxLength(MAX_ATTEMPTS),
      ),
    }),
  ),
});

type KeptSubject = v.InferOutput<typeof AttemptsFile>["subjects"][number];

interface AttemptsOptions extends StatePlace {
  readonly stamp: () => Stamp;
  /** Called when it changes. Attempts that cannot be written still count in this process. */
  readonly onProblem: (problem: string, failed: "read" | "write") => void;
}

/**
 * The attempts of earlier processes, written whenever one changes: an agent that is killed repeatedly must not retry
 * one hopeless subject forever. The journal is no substitute: it records steps and not attempts, uses only the wall
 * clock, and contains manual runs.
 */
export function openAttempts(options: AttemptsOptions) {
  const { stateDir, stamp, onProblem } = options;
  const remembered = readAttempts(stateDir, stamp(), performance.now());
  if (remembered.problem !== undefined) onProblem(remembered.problem, "read");
  const file = keepFile({
    everyMs: WRITE_EVERY_MS,
    write: () =>
      writeStateFile(options, "attempts.json", "attempts", () => {
        const nowMs = performance.now();
        return documentOf({ ledger: book.ifEndedNow(nowMs), outlook: book.outlook, nowMs }, stamp());
      }),
    onProblem: (problem) => onProblem(problem, "write"),
  });
  const book = new AttemptBook(remembered.ledger, file.changed);
  return { book, close: file.close };
}

function readAttempts(stateDir: string, now: Stamp, nowMs: number) {
  const path = join(stateDir, "attempts.json");
  const document = readStateDocument(path, AttemptsFile, MAX_BYTES);
  if (document.kind === "none") return {};
  if (document.kind === "unreadable") return { problem: `${document.problem}: retry budgets start again` };
  const { written, subjects } = document.value;
  const writtenMs = nowMs - msSince(written, now);
  const atMs = (secondsBefore: number): number => writtenMs - secondsBefore * 1000;
  const entries = subjects.map(({ finding, class: classId, attempts }): readonly [string, LedgerEntry] => [
    finding,
    {
      class: classId,
      attempts: attempts.map(({ secondsBefore, ...rest }) => ({ ...rest, atMs: atMs(secondsBefore) })),
    },
  ]);
  return { ledger: new Map(entries) };
}

interface Kept {
  readonly ledger: Ledger;
  readonly outlook: Outlook;
  readonly nowMs: number;
}

function documentOf(kept: Kept, written: Stamp): string {
  const head = `{"apiVersion":"unghost.dev/v1","kind":"Attempts","written":${JSON.stringify(written)},"subjects":[\n`;
  const tail = "\n]}\n";
  return `${head}${newestWithin(MAX_BYTES - head.length - tail.length, kept).join(",\n")}${tail}`;
}

/** Oldest first, as in the ledger. */
function newestWithin(bytes: number, { ledger, outlook, nowMs }: Kept): readonly string[] {
  const lines: string[] = [];
  let left = bytes;
  for (const [finding, { class: classId, attempts }] of [...ledger].toReversed()) {
    const kept = attempts.map(({ atMs, ...rest }) => ({ ...rest, secondsBefore: Math.max(0, nowMs - atMs) / 1000 }));
    const line = JSON.stringify({
      finding,
      class: classId,
      ...outlook.get(finding),
      attempts: kept,
    } satisfies KeptSubject);
    left -= Buffer.byteLength(line) + 2;
    if (left < 0) break;
    lines.push(line);
  }
  return lines.toReversed();
}

export function stampNow(hostRoot: string): Stamp {
  const at = new Date();
  const boot = valueOr(readBoot({ root: hostRoot, now: at }), undefined);
  return { at, boot: boot && { id: boot.id, uptimeSeconds: boot.uptimeSeconds } };
}

/**
 * How long ago that was. Within one boot the wall clock is not used, because it may be set. Across boots it is: a clock
 * that was set back neither makes a time lie in the future, nor makes one before the boot younger than the boot.
 */
function msSince(then: Stamp, now: Stamp): number {
  if (then.boot !== undefined && then.boot.id === now.boot?.id) {
    return Math.max(0, (now.boot.uptimeSeconds - then.boot.uptimeSeconds) * 1000);
  }
  const byBoot = then.boot === undefined ? 0 : (now.boot?.uptimeSeconds ?? 0) * 1000;
  const byWallClock = then.at < EARLIEST_PLAUSIBLE ? 0 : now.at.getTime() - then.at.getTime();
  return Math.max(byBoot, byWallClock, 0);
}
