import { linkSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as v from "valibot";
import { type Outcome, ok, refuse } from "./outcome.ts";
import { livenessOf, type ProcessIdentity } from "./process-identity.ts";
import { describeError, errorCode } from "./system-error.ts";

const holderSchema = v.object({
  /** Different in every acquisition. */
  nonce: v.pipe(v.string(), v.regex(/^[0-9a-z]{1,32}$/)),
  pid: v.number(),
  startedSecondsAfterBoot: v.number(),
  boot: v.string(),
  pidNamespace: v.string(),
});

type Holder = v.InferOutput<typeof holderSchema>;

export interface RunLock {
  readonly release: () => void;
}

export interface RunLockOptions {
  readonly path: string;
  readonly own: ProcessIdentity;
  /** Must never repeat; letters and digits. */
  readonly newNonce: () => string;
  /** How long to wait for another run to end; 0 leaves at once. */
  readonly waitMs: number;
  readonly pollMs: number;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
}

/**
 * One run at a time. The lock is a file that names its holder; it is worth nothing once that process is dead, and is
 * then taken over without a moment in which two could hold it (see takeOver).
 */
export async function acquireRunLock(options: RunLockOptions): Promise<Outcome<RunLock>> {
  const { path, waitMs, pollMs, sleep } = options;
  try {
    for (let waited = 0; ; waited += pollMs) {
      const attempt = tryAcquire(path, options, 0);
      if (attempt.held) {
        const lock = { release: () => release(path, attempt.nonce) };
        removeLitter(path, options.own, lock);
        return ok(lock);
      }
      if (waited >= waitMs) return busy(path, attempt.by);
      await sleep(pollMs);
    }
  } catch (thrown) {
    return refuse(
      `The lock ${path} cannot be taken: ${describeError(thrown)}.`,
      "Repair the state directory, or choose another with --state-dir.",
    );
  }
}

type Attempt = { readonly held: true; readonly nonce: string } | { readonly held: false; readonly by: Holder };

/** A killed take-over leaves one more dead guard; more than this many in a row is not chance. */
const MAX_DEAD_GUARDS = 8;

function tryAcquire(path: string, options: RunLockOptions, depth: number): Attempt {
  const mine: Holder = { nonce: options.newNonce(), ...options.own };
  const draft = `${path}.${mine.nonce}.draft`;
  writeFileSync(draft, JSON.stringify(mine), { flag: "wx", mode: 0o600 });
  try {
    for (;;) {
      // Unlike open(O_EXCL), link() makes the lock appear with its content complete.
      if (linkIfFree(draft, path)) return { held: true, nonce: mine.nonce };
      const holder = readHolder(path);
      if (holder === undefined) continue;
      if (holder !== "unreadable" && livenessOf(holder, options.own) !== "dead") return { held: false, by: holder };
      if (depth === MAX_DEAD_GUARDS) throw new Error(`too many dead guards beside ${path}; remove them by hand`);
      const taken = takeOver(path, holder, draft, options, depth);
      if (taken === true) return { held: true, nonce: mine.nonce };
      if (taken !== false) return { held: false, by: taken };
    }
  } finally {
    unlinkIfThere(draft);
  }
}

/**
 * Replaces the lock of a dead holder. Only whoever holds the guard named after that very acquisition may do so, and
 * only while the lock still is that one: from then on nobody else can change it, so the rename hits no living one.
 * A guard is a lock like any other; should its holder die, it is taken over in the same way.
 * True: taken. False: look again. A holder: that process is taking it over right now.
 */
function takeOver(
  path: string,
  dead: Holder | "unreadable",
  draft: string,
  options: RunLockOptions,
  depth: number,
): boolean | Holder {
  const guardPath = `${path}.${nonceOf(dead)}`;
  const guard = tryAcquire(guardPath, options, depth + 1);
  if (!guard.held) return guard.by;
  try {
    const current = readHolder(path);
    if (current === undefined || nonceOf(current) !== nonceOf(dead)) return false;
    renameSync(draft, path);
    return true;
  } finally {
    release(guardPath, guard.nonce);
  }
}

function release(path: string, nonce: string): void {
  const holder = readHolder(path);
  if (holder !== undefined && nonceOf(holder) === nonce) unlinkIfThere(path);
}

/** Only a power cut leaves a lock with broken content, and nobody survives that, so one name for all is enough. */
function nonceOf(holder: Holder | "unreadable"): string {
  return holder === "unreadable" ? holder : holder.nonce;
}

function readHolder(path: string): Holder | "unreadable" | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
  try {
    const parsed = v.safeParse(holderSchema, JSON.parse(text));
    return parsed.success ? parsed.output : "unreadable";
  } catch {
    return "unreadable";
  }
}

/** Drafts and guards of killed runs. They block nobody; they only lie about. */
function removeLitter(path: string, own: ProcessIdentity, lock: RunLock): void {
  const prefix = `${basename(path)}.`;
  try {
    for (const name of readdirSync(dirname(path))) {
      if (!name.startsWith(prefix)) continue;
      const litter = join(dirname(path), name);
      const holder = readHolder(litter);
      if (holder !== undefined && holder !== "unreadable" && livenessOf(holder, own) === "dead") unlinkIfThere(litter);
    }
  } catch (thrown) {
    lock.release();
    throw thrown;
  }
}

function linkIfFree(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (thrown) {
    if (errorCode(thrown) === "EEXIST") return false;
    throw thrown;
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
}

function busy(path: string, holder: Holder): ReturnType<typeof refuse> {
  return refuse(
    `Another unghost run is under way: process ${holder.pid} holds ${path}.`,
    `Wait for it to end. Should no such run exist (it ran in a container that is gone), remove ${path}.`,
    "lock",
  );
}
