import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { failureOf, runChild } from "../../host/child.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { flockCommand, LOCK_BUSY, type LockMode, openLibc, systemCallEnv, tryFlock } from "../../host/system-call.ts";
import { type Outcome, ok, refuse } from "./outcome.ts";

/**
 * - `held`: until `release`, or until this process ends in any way.
 * - `busy`: another open file holds it.
 * - `refused`: the path is not a lock file, or flock(2) is unavailable.
 */
type KernelLock =
  | { readonly kind: "held"; readonly fd: number; readonly release: () => void }
  | { readonly kind: "busy" }
  | { readonly kind: "refused"; readonly reason: string; readonly next: string };

const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** A lock file that is replaced more often is an attack. */
const REPLACED_TIMES = 5;
const ASK_MS = 10_000;
/**
 * Retry interval while another process holds it: of our own call, and of a child process, which takes milliseconds to
 * start.
 */
const POLL_MS = 20;
const POLL_BY_CHILD_MS = 200;

/**
 * Takes flock(2) on a file. The kernel releases it when this process ends, in any pid namespace; no child inherits the
 * descriptor, because both engines open files with O_CLOEXEC.
 */
export async function takeKernelLock(path: string, waitMs: number): Promise<KernelLock> {
  for (let tries = 0; tries < REPLACED_TIMES; tries++) {
    const opened = openLockFile(path);
    if (typeof opened !== "number") return opened;
    const answer = await lockDescriptor(opened, waitMs);
    if (answer.kind === "held" && isStill(path, opened)) {
      return { kind: "held", fd: opened, release: () => closeSync(opened) };
    }
    closeSync(opened);
    if (answer.kind !== "held") return answer;
  }
  return refused(`${path} is being replaced again and again`, "Find out who removes it.");
}

/**
 * Whether a process holds it at this moment. Requests a shared lock and releases it at once; if flock(2) is
 * unavailable, no holder is known.
 */
export async function isKernelLocked(path: string): Promise<boolean> {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch {
    return false;
  }
  try {
    if (!fstatSync(fd).isFile()) return false;
    return (await askOnce(fd, "shared")).kind === "busy";
  } finally {
    closeSync(fd);
  }
}

function openLockFile(path: string): number | (KernelLock & { kind: "refused" }) {
  const next = `Inspect it, and remove it: unghost creates ${path} itself.`;
  let fd: number;
  try {
    fd = openSync(path, FLAGS, 0o600);
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ELOOP") return refused(`${path} is a symbolic link, which is not followed`, next);
    if (code === "EISDIR") return refused(`${path} is a directory, not a lock file`, next);
    if (code === "ENXIO") return refused(`${path} is a socket or a FIFO, not a lock file`, next);
    return refused(
      `${path} cannot be opened: ${describeError(thrown)}`,
      "Repair the state directory, or choose another with --state-dir.",
    );
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return refused(`${path} is not a regular file`, next);
}

type Answer = { readonly kind: "held" } | Exclude<KernelLock, { kind: "held" }>;

async function lockDescriptor(fd: number, waitMs: number): Promise<Answer> {
  const pollMs = openLibc() === undefined ? POLL_BY_CHILD_MS : POLL_MS;
  for (let waited = 0; ; waited += pollMs) {
    const answer = await askOnce(fd, "exclusive");
    if (answer.kind !== "busy" || waited >= waitMs) return answer;
    await sleep(pollMs);
  }
}

/**
 * Without FFI a child takes the lock on an inherited descriptor: it belongs to the open file, which stays ours after
 * the child has ended.
 */
async function askOnce(fd: number, mode: LockMode): Promise<Answer> {
  const libc = openLibc();
  if (libc !== undefined) {
    const answer = tryFlock(libc, fd, mode);
    if (typeof answer === "object") return cannotAsk(answer.error);
    return { kind: answer === "taken" ? "held" : "busy" };
  }
  const asked = await runChild(flockCommand(mode), { stdinFd: fd, timeoutMs: ASK_MS, env: systemCallEnv() });
  const failure = failureOf(asked);
  if (failure === undefined) return { kind: "held" };
  const isBusy = asked.end.kind === "exited" && asked.end.code === LOCK_BUSY;
  return isBusy ? { kind: "busy" } : cannotAsk(`${failure} ${asked.stderr.trim()}`.trim());
}

function cannotAsk(detail: string): Answer {
  return refused(
    `flock failed: ${detail}`,
    "Move the state directory to a file system with flock(2), with --state-dir.",
  );
}

/** A lock on a file that was removed meanwhile excludes nothing. */
function isStill(path: string, fd: number): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false });
  const ours = fstatSync(fd);
  return there?.ino === ours.ino && there.dev === ours.dev;
}

function refused(reason: string, next: string): KernelLock & { kind: "refused" } {
  return { kind: "refused", reason, next };
}

/** Runs `work` under the flock(2) that another program takes on this file, for example host-local. */
export async function withFlock<T>(path: string, waitMs: number, work: () => Promise<T>): Promise<Outcome<T>> {
  const lock = await takeKernelLock(path, waitMs);
  if (lock.kind === "refused") return refuse(`The lock ${path} cannot be taken: ${lock.reason}.`, lock.next);
  if (lock.kind === "busy") {
    return refuse(`The lock ${path} was not free within ${waitMs / 1000}s.`, "Find out which plugin holds it.");
  }
  try {
    return ok(await work());
  } finally {
    lock.release();
  }
}
