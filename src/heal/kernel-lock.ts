import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { failureOf, runChild } from "../child/run-child.ts";
import { describeError, errorCode } from "./system-error.ts";

/**
 * - `held`: until `release`, or until this process ends in whatever way.
 * - `busy`: another open file holds it.
 * - `refused`: what lies there is no lock file, or the kernel could not be asked.
 */
export type KernelLock =
  | { readonly kind: "held"; readonly fd: number; readonly release: () => void }
  | { readonly kind: "busy" }
  | { readonly kind: "refused"; readonly reason: string; readonly next: string };

const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
/** A lock file that is replaced again and again is not chance. */
const REPLACED_TIMES = 5;
const ASK_MS = 10_000;
/** flock's code for "somebody else holds it". */
const BUSY = 1;

/**
 * Takes flock(2) on a file. The engine has no such call, so flock(1) takes it on a descriptor that it inherits: the lock
 * belongs to the open file, which stays ours when flock has ended. The kernel frees it when this process ends, in whatever
 * pid namespace it was; no child inherits the descriptor, because both engines open files with O_CLOEXEC.
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
 * Whether somebody holds it at this moment. Asks for a shared lock and gives it back at once; where the kernel cannot be
 * asked, nobody is known to hold it.
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
    const { end } = await runChild(["flock", "-s", "-n", "0"], { stdinFd: fd, timeoutMs: ASK_MS });
    return end.kind === "exited" && end.code === BUSY;
  } finally {
    closeSync(fd);
  }
}

function openLockFile(path: string): number | (KernelLock & { kind: "refused" }) {
  const next = `Look at what it is, and remove it: unghost makes ${path} itself.`;
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
  const atOnce = await runChild(["flock", "-x", "-n", "0"], { stdinFd: fd, timeoutMs: ASK_MS });
  if (failureOf(atOnce) === undefined) return { kind: "held" };
  if (atOnce.end.kind !== "exited" || atOnce.end.code !== BUSY) {
    return refused(
      `flock ${failureOf(atOnce)} ${atOnce.stderr.trim()}`.trim(),
      "unghost needs the program flock (util-linux or busybox) to hold its lock: install it.",
    );
  }
  if (waitMs <= 0) return { kind: "busy" };
  // Should it be killed in the very moment in which it gets the lock, closing the file frees it again.
  const waited = await runChild(["flock", "-x", "0"], { stdinFd: fd, timeoutMs: waitMs, graceMs: 100 });
  return failureOf(waited) === undefined ? { kind: "held" } : { kind: "busy" };
}

/** A lock on a file that was removed meanwhile excludes nobody. */
function isStill(path: string, fd: number): boolean {
  const there = lstatSync(path, { throwIfNoEntry: false });
  const ours = fstatSync(fd);
  return there?.ino === ours.ino && there.dev === ours.dev;
}

function refused(reason: string, next: string): KernelLock & { kind: "refused" } {
  return { kind: "refused", reason, next };
}
