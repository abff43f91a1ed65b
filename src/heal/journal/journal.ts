import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { Evidence } from "../../evidence/finding.ts";
import type { JournalAction } from "../../evidence/step.ts";
import { splitLines } from "../../host/safe-fs.ts";
import { describeError } from "../../host/source.ts";
import { ifThere, syncDirectory } from "../state/durable-files.ts";
import { type Outcome, ok, refuse } from "../state/outcome.ts";
import type { StateDir } from "../state/state-layout.ts";
import {
  type Actor,
  type DoneOutcome,
  formatEntry,
  type JournalEntry,
  type JournalId,
  type JournalSubject,
  type RecoveredHow,
} from "./entry.ts";
import { chunksOf, isOpen, MAX_LINE_BYTES, readHistory } from "./reader.ts";

export interface JournalOptions {
  readonly stateDir: StateDir;
  /** The id of this run in every entry. */
  readonly run: string;
  /** The kernel's boot id. */
  readonly boot: string;
  /** What started the run. */
  readonly by?: Actor;
  readonly clock: () => Date;
  readonly newId: () => JournalId;
  /** A file of this size is rotated; default 4 MiB. */
  readonly maxBytes?: number;
  /** How many rotated files are kept; default 4. */
  readonly keep?: number;
}

/** The announced change, and its reason. */
export interface Intent {
  readonly finding: string;
  readonly class: string;
  readonly subject: JournalSubject;
  readonly action: JournalAction;
  /** By which facts; the journal keeps the first ones, once a run. */
  readonly evidence?: readonly Evidence[];
}

/** What healing removes cannot be read again: this is what remains of it. A finding has three to eight facts. */
const MAX_FACTS = 12;
const MAX_FACT_CHARACTERS = 300;

function bounded(evidence: readonly Evidence[]): Evidence[] {
  return evidence.slice(0, MAX_FACTS).map(({ source, fact }) => ({ source, fact: fact.slice(0, MAX_FACT_CHARACTERS) }));
}

type Draft = JournalEntry extends infer E ? (E extends JournalEntry ? Omit<E, "at" | "run" | "boot"> : never) : never;

interface Waiting {
  readonly line: string;
  /** A caller waits for it. */
  readonly urgent: boolean;
  readonly settle: (outcome: Outcome<void>) => void;
}

/** Long enough for many ends to share one sync, too short to matter to a reader. */
const SOON_MS = 50;

/** Opens the journal for appending. The caller holds the run lock, so there is one writer at a time. */
export async function openJournal(options: JournalOptions): Promise<Outcome<Journal>> {
  try {
    return ok(new Journal(options, await openForAppending(options.stateDir.journal)));
  } catch (thrown) {
    return notWritten(options.stateDir.journal, thrown);
  }
}

/**
 * The append-only record of every change. A promise that resolves to ok means that the line is on disk. Queued lines
 * are written and synced together, so that concurrent subjects need few syncs.
 */
export class Journal {
  readonly #options: JournalOptions;
  #file: AppendFile;
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #rotateAt: number;
  #broken: ReturnType<typeof refuse> | undefined;
  #closed = false;
  /** Started by this process, on disk, and not ended. */
  readonly #open = new Set<JournalId>();
  /** Findings whose evidence this run has written. */
  readonly #proven = new Set<string>();
  readonly #warnings: string[] = [];

  constructor(options: JournalOptions, file: AppendFile) {
    this.#options = options;
    this.#file = file;
    this.#rotateAt = this.#maxBytes;
  }

  /** Announces a change. The change may be made only if this is ok. */
  async begin(intent: Intent): Promise<Outcome<JournalId>> {
    const id = this.#options.newId();
    const { evidence = [], ...change } = intent;
    const isFirst = evidence.length > 0 && !this.#proven.has(intent.finding);
    if (isFirst) this.#proven.add(intent.finding);
    const written = await this.#append({
      event: "begin",
      id,
      ...change,
      evidence: isFirst ? bounded(evidence) : undefined,
    });
    return written.ok ? ok(id) : written;
  }

  done(id: JournalId, outcome: DoneOutcome, detail?: string): Promise<Outcome<void>> {
    return this.#append({ event: "done", id, outcome, detail });
  }

  /**
   * Like done(), without waiting: the line is written with the next ones, or soon. Only if losing it does no harm,
   * because a scan decides in any case whether the change took effect.
   */
  ended(id: JournalId, outcome: DoneOutcome, detail?: string): void {
    this.#wait({ event: "done", id, outcome, detail }, false, () => undefined);
    this.#flushSoon();
  }

  undoing(id: JournalId): Promise<Outcome<void>> {
    return this.#append({ event: "undoing", id });
  }

  undone(id: JournalId): Promise<Outcome<void>> {
    return this.#append({ event: "undone", id });
  }

  pruned(id: JournalId): Promise<Outcome<void>> {
    return this.#append({ event: "pruned", id });
  }

  recovered(id: JournalId, how: RecoveredHow, detail: string): Promise<Outcome<void>> {
    return this.#append({ event: "recovered", id, how, detail });
  }

  /** Problems that stopped nothing, for the report. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /**
   * Identifies the journal as this run leaves it; undefined if an entry is open, or a line may be torn. The file only
   * grows or is replaced: while it still has this identity, it has not been written since.
   */
  get settledAs(): string | undefined {
    const { identity, size, cutOff } = this.#file;
    return this.#open.size > 0 || cutOff ? undefined : `${identity}:${size}`;
  }

  async close(): Promise<void> {
    while (this.#flushing !== undefined || this.#waiting.length > 0) await (this.#flushing ??= this.#flush());
    clearTimeout(this.#soon);
    if (this.#closed) return;
    this.#closed = true;
    this.#broken ??= refuse("The journal is closed.", "Open it again.");
    await this.#file.handle.close();
  }

  #append(draft: Draft): Promise<Outcome<void>> {
    return new Promise((settle) => {
      this.#wait(draft, true, settle);
      this.#flushing ??= this.#flush();
    });
  }

  #wait(draft: Draft, urgent: boolean, settle: Waiting["settle"]): void {
    this.#waiting.push({
      line: formatEntry(this.#stamped(draft)),
      urgent,
      settle: (outcome) => {
        if (outcome.ok && "id" in draft) this.#noteOnDisk(draft);
        settle(outcome);
      },
    });
  }

  #noteOnDisk({ event, id }: Pick<Extract<Draft, { id: JournalId }>, "event" | "id">): void {
    if (event === "begin" || event === "undoing") this.#open.add(id);
    else this.#open.delete(id);
  }

  #flushSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#flushing ??= this.#flush();
    }, SOON_MS);
  }

  async #flush(): Promise<void> {
    // Lets everything that is ready in this turn of the event loop join the first batch.
    await Promise.resolve();
    do {
      const batch = this.#waiting;
      this.#waiting = [];
      const outcome = this.#broken ?? (await this.#write(batch.map(({ line }) => line).join("")));
      for (const { settle } of batch) settle(outcome);
    } while (this.#waiting.some(({ urgent }) => urgent));
    // In the same tick as the check of the queue, or an entry that is added in between would wait forever.
    this.#flushing = undefined;
    if (this.#waiting.length > 0) this.#flushSoon();
  }

  async #write(lines: string): Promise<Outcome<void>> {
    const rotated = await this.#rotateIfLarge();
    if (!rotated.ok) return rotated;
    const file = this.#file;
    const fresh = file.cutOff ? `\n${formatEntry(this.#stamped({ event: "resumed" }))}` : "";
    const bytes = Buffer.from(fresh + lines);
    try {
      file.cutOff = true;
      await file.handle.appendFile(bytes);
      file.cutOff = false;
      file.size += bytes.length;
    } catch (thrown) {
      return notWritten(this.#options.stateDir.journal, thrown);
    }
    try {
      await file.handle.sync();
      return ok(undefined);
    } catch (thrown) {
      // After a failed sync the kernel may have dropped the pages and report the next sync as successful, so the
      // journal is not used any more.
      this.#broken = notWritten(this.#options.stateDir.journal, thrown);
      return this.#broken;
    }
  }

  async #rotateIfLarge(): Promise<Outcome<void>> {
    if (this.#file.size < this.#rotateAt) return ok(undefined);
    const { stateDir, keep = 4 } = this.#options;
    try {
      await rotateJournal(stateDir, keep);
    } catch (thrown) {
      this.#warnings.push(`The journal ${stateDir.journal} could not be rotated: ${describeError(thrown)}.`);
    }
    try {
      const old = this.#file.handle;
      this.#file = await openForAppending(stateDir.journal);
      this.#rotateAt = this.#file.size + this.#maxBytes;
      await old.close();
      return ok(undefined);
    } catch (thrown) {
      this.#broken = notWritten(stateDir.journal, thrown);
      return this.#broken;
    }
  }

  get #maxBytes(): number {
    return this.#options.maxBytes ?? 4 * 1024 * 1024;
  }

  #stamped(draft: Draft): JournalEntry {
    const { run, boot, clock, by } = this.#options;
    const stamped = { ...draft, at: clock().toISOString(), run, boot };
    return stamped.event === "begin" && by !== undefined ? { ...stamped, by } : stamped;
  }
}

interface AppendFile {
  readonly handle: FileHandle;
  /** Distinguishes it from every other file. */
  readonly identity: string;
  size: number;
  /** The last line has no newline: the next entry must start on a new one. */
  cutOff: boolean;
}

async function openForAppending(path: string): Promise<AppendFile> {
  const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(path, flags, 0o600);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new Error("it is not a regular file");
    const last = Buffer.alloc(1);
    if (stats.size > 0) await handle.read(last, 0, 1, stats.size - 1);
    await syncDirectory(dirname(path));
    const { dev, ino, size } = stats;
    return { handle, identity: `${dev}:${ino}`, size, cutOff: size > 0 && last.toString() !== "\n" };
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

function notWritten(path: string, thrown: unknown): ReturnType<typeof refuse> {
  return refuse(
    `The journal ${path} cannot be written: ${describeError(thrown)}.`,
    "Nothing is changed without a journal. Free space or repair that file system, then run unghost again.",
  );
}

/** What every change of the node needs: state directory, journal and host root. */
export interface HealContext {
  readonly stateDir: StateDir;
  readonly journal: Journal;
  /** "/" on the node itself, the mount point of the host in a container. */
  readonly hostRoot: string;
}

/**
 * Renames journal to journal.1, journal.1 to journal.2 and so on. The oldest file is dropped, except for entries that
 * are open or still have a file in quarantine: they are prepended to the new oldest file. Every step is one rename, so
 * a crash in between leaves duplicate lines or an unused number, both of which readers accept.
 */
async function rotateJournal(stateDir: StateDir, keep: number): Promise<void> {
  await mergeIntoOldest(stateDir, keep);
  for (let number = keep - 1; number >= 1; number--) {
    await ifThere(rename(numbered(stateDir, number), numbered(stateDir, number + 1)));
  }
  await ifThere(rename(stateDir.journal, numbered(stateDir, 1)));
  await syncDirectory(dirname(stateDir.journal));
}

const READ_ONLY = constants.O_RDONLY | constants.O_NOFOLLOW;

/** Replaces the oldest file by its kept entries, followed by the second oldest. */
async function mergeIntoOldest(stateDir: StateDir, keep: number): Promise<void> {
  const oldest = await ifThere(open(numbered(stateDir, keep), READ_ONLY));
  if (oldest === undefined) return;
  const next = numbered(stateDir, keep - 1);
  const second = await ifThere(open(next, READ_ONLY));
  const temporary = `${stateDir.journal}.merging`;
  const merged = await open(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await appendKept(oldest, merged, await idsToKeep(stateDir));
    if (second !== undefined) for await (const chunk of chunksOf(second)) await merged.writeFile(chunk);
    await merged.sync();
  } finally {
    await merged.close();
    await oldest.close();
    await second?.close();
  }
  await rename(temporary, numbered(stateDir, keep));
  if (second !== undefined) await unlink(next);
}

async function appendKept(from: FileHandle, to: FileHandle, ids: ReadonlySet<string>): Promise<void> {
  for await (const line of splitLines(chunksOf(from), MAX_LINE_BYTES)) {
    if (line.isCut) continue;
    const id = looseId(line.bytes);
    if (id !== undefined && ids.has(id)) await to.writeFile(Buffer.concat([line.bytes, Buffer.from("\n")]));
  }
}

async function idsToKeep(stateDir: StateDir): Promise<ReadonlySet<string>> {
  const { records } = await readHistory(stateDir.journal);
  const unfinished = records.filter(isOpen).map((record) => record.id);
  return new Set([...unfinished, ...(await readdir(stateDir.quarantine))]);
}

/** Reads only the id, so that an entry of a newer version is kept as well. */
function looseId(line: Uint8Array): string | undefined {
  try {
    const json: unknown = JSON.parse(Buffer.from(line).toString());
    if (typeof json !== "object" || json === null || !("id" in json)) return undefined;
    return typeof json.id === "string" ? json.id : undefined;
  } catch {
    // A torn or damaged line has no id to keep.
    return undefined;
  }
}

function numbered(stateDir: StateDir, number: number): string {
  return number === 0 ? stateDir.journal : `${stateDir.journal}.${number}`;
}
