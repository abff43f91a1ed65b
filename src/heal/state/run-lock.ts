import { ftruncateSync, lstatSync, mkdirSync, readlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { parseStat, procText, readProcFile } from "../../host/proc.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { describeError } from "../../host/source.ts";
import { parseJson } from "../../host/text.ts";
import { isKernelLocked, takeKernelLock } from "./kernel-lock.ts";
import { type Outcome, ok, refuse } from "./outcome.ts";
import type { StateDir } from "./state-layout.ts";

const holderSchema = v.object({
  pid: v.number(),
  startedSecondsAfterBoot: v.number(),
  boot: v.string(),
  pidNamespace: v.string(),
  /** The run id in the journal, if the holder writes one. */
  run: v.optional(v.string()),
});

type Holder = v.InferOutput<typeof holderSchema>;

interface RunLock {
  readonly release: () => void;
}

export interface RunLockOptions {
  readonly path: string;
  readonly own: ProcessIdentity;
  /** The run id of its journal entries. */
  readonly run?: string;
  /** How long to wait for another run; 0 fails at once. */
  readonly waitMs: number;
}

/** The holder, for messages. */
interface LockWords {
  readonly busy: (holder: string, path: string) => string;
  readonly next: string;
}

const RUN: LockWords = {
  busy: (holder, path) => `Another unghost run is under way: ${holder} holds ${path}.`,
  next: "Wait for it to end.",
};

/** One run at a time. */
export function acquireRunLock(options: RunLockOptions): Promise<Outcome<RunLock>> {
  return acquireLock(options, RUN);
}

/**
 * A lock that the kernel holds for this process and releases at its end, however it ends and in any pid namespace. The
 * file contains the holder only for the message.
 */
async function acquireLock(options: RunLockOptions, words: LockWords): Promise<Outcome<RunLock>> {
  const { path, own, run, waitMs } = options;
  const lock = await takeKernelLock(path, waitMs);
  if (lock.kind === "refused") return refuse(`The lock ${path} cannot be taken: ${lock.reason}.`, lock.next);
  if (lock.kind === "busy") return refuse(words.busy(holderWords(readHolder(path), own), path), words.next, "lock");
  return named(path, { ...own, run }, lock);
}

function named(path: string, holder: Holder, { fd, release }: { fd: number; release: () => void }): Outcome<RunLock> {
  try {
    ftruncateSync(fd, 0);
    writeSync(fd, JSON.stringify(holder), 0);
  } catch (thrown) {
    release();
    return refuse(
      `The lock ${path} cannot be written: ${describeError(thrown)}.`,
      "Repair the state directory, or choose another with --state-dir.",
    );
  }
  return ok({
    release: () => {
      ftruncateSync(fd, 0);
      release();
    },
  });
}

/** A run that is changing the node now. */
export interface LiveRun {
  readonly run: string;
  readonly pid: number;
  readonly journal: string;
}

/**
 * The run that holds the lock now. The kernel shows that it is held; the file only names the holder, and may still name
 * a killed run while the next one is about to write its own name.
 */
export async function liveRun(
  { lock, journal }: Pick<StateDir, "lock" | "journal">,
  own: ProcessIdentity,
): Promise<LiveRun | undefined> {
  if (!(await isKernelLocked(lock))) return undefined;
  const holder = readHolder(lock);
  if (holder?.run === undefined || stateOfProcess(holder, own) === "dead") return undefined;
  return { run: holder.run, pid: holder.pid, journal };
}

const MAX_HOLDER_BYTES = 64 * 1024;

function readHolder(path: string): Holder | undefined {
  const file = readRegularFile(path, MAX_HOLDER_BYTES);
  if (file.kind === "closed") throw new Error(`${path} ${file.reason}`);
  const parsed = v.safeParse(holderSchema, file.kind === "content" ? parseJson(file.text) : undefined);
  return parsed.success ? parsed.output : undefined;
}

function holderWords(holder: Holder | undefined, own: ProcessIdentity): string {
  if (holder === undefined) return "another process";
  const where = holder.pidNamespace === own.pidNamespace ? "" : ` (of the pid namespace ${holder.pidNamespace})`;
  return `process ${holder.pid}${where}`;
}

/** Per node, and not per state directory: two agents with two of them would still heal the same sandboxes. */
const AGENT_DIR = "/run/unghost";

/** One agent per node. A refusal of the kind `lock` means that there is another one. */
export async function acquireAgentLock(hostRoot: string, uid: number): Promise<Outcome<RunLock>> {
  const dir = join(hostRoot, AGENT_DIR);
  const next = `Make ${dir} a directory that only unghost's user may write to.`;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const stats = lstatSync(dir);
    if (!stats.isDirectory() || stats.uid !== uid || (stats.mode & 0o022) !== 0) {
      return refuse(`${dir} is not a directory that only user ${uid} may write to.`, next);
    }
  } catch (thrown) {
    return refuse(`${dir} cannot be used: ${describeError(thrown)}.`, next);
  }
  return await acquireLock(
    { path: join(dir, "agent.lock"), own: ownIdentity(), waitMs: 0 },
    {
      busy: (holder, path) => `Another unghost agent runs on this node: ${holder} holds ${path}.`,
      next: "Stop that one first: two agents would heal the same sandboxes.",
    },
  );
}

/** Identifies one process: pids are reused, a pid with its start time in one boot is not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedSecondsAfterBoot: number;
  readonly boot: string;
  /** pids mean nothing outside their namespace: `pid:[4026531836]`. */
  readonly pidNamespace: string;
}

export function ownIdentity(): ProcessIdentity {
  const startedSecondsAfterBoot = startOf(process.pid);
  if (startedSecondsAfterBoot === undefined) {
    throw new Error(
      `/proc does not show process ${process.pid}, which is unghost itself: it belongs to other processes`,
    );
  }
  return {
    pid: process.pid,
    startedSecondsAfterBoot,
    boot: procText("/proc/sys/kernel/random/boot_id").trim(),
    pidNamespace: readlinkSync("/proc/self/ns/pid"),
  };
}

/** `unknown`: its pid cannot be resolved in this namespace. */
function stateOfProcess(other: ProcessIdentity, own: ProcessIdentity): "alive" | "dead" | "unknown" {
  if (other.boot !== own.boot) return "dead";
  if (other.pidNamespace !== own.pidNamespace) return "unknown";
  return startOf(other.pid) === other.startedSecondsAfterBoot ? "alive" : "dead";
}

/** Undefined for a process that is gone, or a zombie, which cannot do anything any more. */
function startOf(pid: number): number | undefined {
  const read = readProcFile(`/proc/${pid}/stat`);
  if (read.kind === "denied" || read.kind === "unreadable") throw new Error(`/proc/${pid}/stat cannot be read`);
  const stat = read.kind === "content" ? parseStat(read.text) : undefined;
  return stat?.state === "Z" || stat?.state === "X" ? undefined : stat?.startedSecondsAfterBoot;
}
