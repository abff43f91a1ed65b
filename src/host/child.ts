import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { getPriority, setPriority } from "node:os";
import type { Readable, Writable } from "node:stream";

/**
 * How a child process ended.
 * - `exited`, `signalled`: reported by the kernel.
 * - `not-started`: it could not be executed.
 * - `abandoned`: SIGKILL had no effect, because it hangs in the kernel (state D); it is not waited for.
 */
export type ChildEnd =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: string }
  | { readonly kind: "not-started"; readonly error: Error }
  | { readonly kind: "abandoned" };

export interface Child {
  readonly stdin: Writable | undefined;
  readonly stdout: Readable | undefined;
  readonly stderr: Readable | undefined;
  /** The exit of the child itself, even while another process still holds its pipes open. */
  readonly ended: Promise<ChildEnd>;
  /** Ends the whole process group: SIGTERM, SIGKILL after the grace period. Settles by a timer in any case. */
  stop(): Promise<ChildEnd>;
}

export interface StartOptions extends Pick<SpawnOptions, "env" | "stdio"> {
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs?: number;
  /** Ends the child in another way than by SIGTERM. */
  readonly askToEnd?: (child: Child) => void;
}

const GRACE_MS = 1000;
/** SIGKILL works at once, or not at all. */
const KILLED_MS = 500;

/**
 * Starts a program as the leader of its own session and process group. Every child process of unghost is started here:
 * it can be killed together with its descendants, and it does not get the terminal's Ctrl-C.
 */
export function startChild([file = "", ...args]: readonly string[], options: StartOptions): Child {
  const { graceMs = GRACE_MS, askToEnd, ...how } = options;
  let spawned: ChildProcess;
  try {
    spawned = spawn(file, args, { ...how, detached: true });
  } catch (error) {
    return neverStarted(error instanceof Error ? error : new Error(String(error)));
  }
  const { pid } = spawned;
  if (pid !== undefined) lowerPriority(pid);
  const stdin = spawned.stdin ?? undefined;
  const stdout = spawned.stdout ?? undefined;
  const stderr = spawned.stderr ?? undefined;
  // The reader of the pipe is gone. The exit code reports the failure, so this error is ignored.
  stdin?.on("error", () => undefined);
  const { promise: ended, resolve: settle } = Promise.withResolvers<ChildEnd>();
  const child: Child = { stdin, stdout, stderr, ended, stop };
  const timers: NodeJS.Timeout[] = [];
  let isStopping = false;

  function killGroup(signal: "SIGTERM" | "SIGKILL"): void {
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // No process of the group is left.
    }
  }

  function finish(end: ChildEnd): void {
    for (const timer of timers) clearTimeout(timer);
    running.delete(killGroup);
    if (end.kind === "abandoned" || isStopping) {
      // A descendant with its own session may keep the pipes open forever.
      for (const pipe of [stdin, stdout, stderr]) pipe?.destroy();
      spawned.unref();
    }
    settle(end);
  }

  function stop(): Promise<ChildEnd> {
    if (isStopping || !running.has(killGroup)) return ended;
    isStopping = true;
    if (askToEnd === undefined) killGroup("SIGTERM");
    else askToEnd(child);
    timers.push(
      setTimeout(() => killGroup("SIGKILL"), graceMs),
      setTimeout(() => finish({ kind: "abandoned" }), graceMs + KILLED_MS),
    );
    return ended;
  }

  killAtExit(killGroup);
  spawned.on("error", (error) => {
    if (pid === undefined) finish({ kind: "not-started", error });
  });
  spawned.on("exit", (code, signal) => {
    // Its descendants may ignore SIGTERM. The group id cannot be reused yet, because the pid was released just now.
    if (isStopping) killGroup("SIGKILL");
    finish(code === null ? { kind: "signalled", signal: String(signal) } : { kind: "exited", code });
  });
  return child;
}

/** The agent runs with a higher priority. Its child processes do not. */
function lowerPriority(pid: number): void {
  try {
    if (getPriority() < 0) setPriority(pid, 0);
  } catch {
    // It has ended already.
  }
}

type KillGroup = (signal: "SIGTERM" | "SIGKILL") => void;

const running = new Set<KillGroup>();
let isArmed = false;

/** A process that exits must not leave child processes behind. */
function killAtExit(killGroup: KillGroup): void {
  running.add(killGroup);
  if (isArmed) return;
  isArmed = true;
  process.on("exit", () => {
    for (const kill of running) kill("SIGKILL");
  });
}

/** A child process that answers requests on a socket, which the parent reads and writes without its event loop. */
export interface Peer {
  readonly fd: number;
  /** Settles when it has ended; never for one that hangs in the kernel. */
  readonly ended: Promise<unknown>;
  /** Kills it and closes the socket. */
  readonly stop: () => void;
}

/** The child has the other end of the socket as its descriptor 3. Undefined if it cannot be started. */
export function startPeer([file = "", ...args]: readonly string[], env: NodeJS.ProcessEnv): Peer | undefined {
  try {
    const peer = typeof Bun === "undefined" ? startNodePeer(file, args, env) : startBunPeer([file, ...args], env);
    if (peer === undefined) return undefined;
    killAtExit(peer.stop);
    void peer.ended.then(() => running.delete(peer.stop));
    return peer;
  } catch {
    // No more processes or memory: the caller reports what it could not read.
    return undefined;
  }
}

/** The part of the shipped engine that is used: unlike its node:child_process, it hands out the descriptor. */
declare const Bun:
  | undefined
  | {
      spawn(options: {
        readonly cmd: readonly string[];
        readonly env: NodeJS.ProcessEnv;
        readonly stdio: readonly ["ignore", "ignore", "ignore", "pipe"];
      }): {
        readonly stdio: readonly (number | null | undefined)[];
        readonly exited: Promise<number>;
        kill(signal: "SIGKILL"): void;
        unref(): void;
      };
    };

function startBunPeer(cmd: readonly string[], env: NodeJS.ProcessEnv): Peer | undefined {
  const spawned = Bun?.spawn({ cmd, env, stdio: ["ignore", "ignore", "ignore", "pipe"] });
  const fd = spawned?.stdio[3];
  if (spawned === undefined || typeof fd !== "number") return undefined;
  spawned.unref();
  const stop = once(() => {
    spawned.kill("SIGKILL");
    closeSync(fd);
  });
  return { fd, ended: spawned.exited, stop };
}

type NodeSocket = Socket & { readonly _handle?: { readonly fd: number; readStop(): void } };

function startNodePeer(file: string, args: readonly string[], env: NodeJS.ProcessEnv): Peer | undefined {
  const spawned = spawn(file, args, { env, stdio: ["ignore", "ignore", "ignore", "pipe"], detached: true });
  const socket = spawned.stdio[3] as NodeSocket | null;
  const handle = socket?.["_handle"];
  const fd = handle?.fd;
  // Else the event loop takes what arrives.
  handle?.readStop();
  const ended = new Promise<void>((resolve) => spawned.once("exit", () => resolve()).once("error", () => resolve()));
  if (socket === null || fd === undefined) return undefined;
  socket.on("error", () => undefined);
  socket.unref();
  spawned.unref();
  const stop = once(() => {
    spawned.kill("SIGKILL");
    socket.destroy();
  });
  return { fd, ended, stop };
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

function neverStarted(reason: Error): Child {
  const ended = Promise.resolve<ChildEnd>({ kind: "not-started", error: reason });
  return { stdin: undefined, stdout: undefined, stderr: undefined, ended, stop: () => ended };
}

/** Remaining output arrives at once after a child's end, unless another process holds the pipes. */
const LAST_OUTPUT_MS = 250;

/** Settles when all output of an ended child has been read, or when another process holds its pipes. */
export async function outputEnded({ stdout, stderr }: Pick<Child, "stdout" | "stderr">): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, LAST_OUTPUT_MS);
  await Promise.race([Promise.all([closed(stdout), closed(stderr)]), late.promise]);
  clearTimeout(timer);
}

function closed(stream: Readable | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (stream === undefined || stream.destroyed || stream.readableEnded) resolve();
    else stream.once("close", resolve).once("error", () => resolve());
  });
}

/** For messages. */
export function describeEnd(end: ChildEnd): string {
  switch (end.kind) {
    case "exited":
      return `ended with code ${end.code}`;
    case "signalled":
      return `was ended by ${end.signal}`;
    case "not-started":
      return `could not be started: ${end.error.message}`;
    case "abandoned":
      return "did not end after SIGKILL: it hangs in the kernel";
  }
}

export interface RunOptions extends Pick<StartOptions, "env" | "graceMs"> {
  /** Written to its standard input, which is then closed. */
  readonly input?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Of each stream; the rest is dropped. */
  readonly maxOutputBytes?: number;
  /** An open file as its standard input, instead of `input`. */
  readonly stdinFd?: number;
}

export interface RunResult {
  readonly end: ChildEnd | { readonly kind: "timed-out"; readonly afterMs: number } | { readonly kind: "aborted" };
  readonly stdout: string;
  readonly stderr: string;
}

const MAX_OUTPUT_BYTES = 64 * 1024;

/**
 * Runs a program to its end and returns its output. Settles soon after the timeout even if the program ignores SIGTERM,
 * hangs in the kernel, or leaves its pipes to a descendant.
 */
export async function runChild(command: readonly string[], options: RunOptions): Promise<RunResult> {
  const { input, env, timeoutMs, signal, maxOutputBytes = MAX_OUTPUT_BYTES, graceMs, stdinFd } = options;
  if (signal?.aborted === true) return { end: { kind: "aborted" }, stdout: "", stderr: "" };
  const child = startChild(command, {
    stdio: [stdinFd ?? (input === undefined ? "ignore" : "pipe"), "pipe", "pipe"],
    env,
    graceMs,
  });
  const stdout = collect(child.stdout, maxOutputBytes);
  const stderr = collect(child.stderr, maxOutputBytes);
  child.stdin?.end(input);
  let cut: RunResult["end"] | undefined;
  const cutShort = (end: RunResult["end"]) => (): void => {
    cut ??= end;
    void child.stop();
  };
  const timer = setTimeout(cutShort({ kind: "timed-out", afterMs: timeoutMs }), timeoutMs);
  const onAbort = cutShort({ kind: "aborted" });
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const end = await child.ended;
    if (end.kind === "exited" || end.kind === "signalled") await outputEnded(child);
    return { end: cut ?? end, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    child.stdout?.destroy();
    child.stderr?.destroy();
  }
}

/** Why a run failed, for messages; undefined if it exited with 0. */
export function failureOf({ end }: RunResult): string | undefined {
  switch (end.kind) {
    case "timed-out":
      return `did not end within ${end.afterMs / 1000}s and was killed`;
    case "aborted":
      return "was stopped before it ended";
    case "exited":
      return end.code === 0 ? undefined : describeEnd(end);
    default:
      return describeEnd(end);
  }
}

function collect(stream: Readable | undefined, maxBytes: number) {
  const chunks: Buffer[] = [];
  let room = maxBytes;
  stream?.on("data", (chunk: Buffer) => {
    if (room <= 0) return;
    chunks.push(chunk.subarray(0, room));
    room -= chunk.length;
  });
  return { text: () => Buffer.concat(chunks).toString("utf8") };
}
