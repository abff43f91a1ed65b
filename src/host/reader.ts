import { writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { type Peer, startPeer } from "./child.ts";
import { lineReader } from "./line-socket.ts";

/**
 * A child process for reads that may never end: neither a signal nor a thread ends a read that waits in the kernel, and
 * a process with such a thread cannot even exit. A child that hangs is killed, or left behind.
 */
export interface Reader {
  /** The answers in the order of the requests. "late" is the last one: then the reader is closed. */
  ask(requests: readonly unknown[], patience: Patience): AsyncGenerator<Answer>;
  /** Blocks this thread until the answer. Undefined if it is late: then the reader is closed. */
  askNow(request: unknown, timeoutMs: number): unknown;
  /** Settles when its process has ended; never for one that hangs in the kernel. */
  readonly ended: Promise<unknown>;
  close(): void;
}

export type Answer = { readonly kind: "answer"; readonly value: unknown } | { readonly kind: "late" };

interface Patience {
  /** For each answer. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** A machine short of CPU time needs long to start a process. */
const START: Patience = { timeoutMs: 3000 };
const POLL_MS = 1;
/** They fit into the buffer of a socket. */
const REQUESTS_AHEAD = 64;

/** Killed readers that still hang in the kernel, in the whole life of this process. */
const MOST_HUNG = 16;
let hung = 0;

/** `command` starts a process that calls `serveRequests`. Undefined if it does not start, or if too many hang. */
export async function openReader(command: readonly string[]): Promise<Reader | undefined> {
  const peer = hung < MOST_HUNG ? startPeer(command, {}) : undefined;
  if (peer === undefined) return undefined;
  const { answer, answerNow: _, ...reader } = readerOf(peer);
  return (await answer(START)).kind === "late" ? undefined : reader;
}

/** Like openReader, for callers that cannot wait: blocks this thread while the child starts. */
export function openReaderNow(command: readonly string[]): Reader | undefined {
  const peer = hung < MOST_HUNG ? startPeer(command, {}) : undefined;
  if (peer === undefined) return undefined;
  const { answer: _, answerNow, ...reader } = readerOf(peer);
  return answerNow(START.timeoutMs) === undefined ? undefined : reader;
}

const gate = new Int32Array(new SharedArrayBuffer(4));
const BLOCKED_POLL_MS = 0.1;

function readerOf(peer: Peer) {
  const nextLine = lineReader(peer.fd);
  let isClosed = false;

  async function answer({ timeoutMs, signal }: Patience): Promise<Answer> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const line = isClosed ? null : nextLine();
      if (typeof line === "string") return { kind: "answer", value: JSON.parse(line) as unknown };
      if (line === null || performance.now() > deadline || signal?.aborted === true) {
        close();
        return { kind: "late" };
      }
      await setTimeout(POLL_MS);
    }
  }

  function answerNow(timeoutMs: number): unknown {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const line = isClosed ? null : nextLine();
      if (typeof line === "string") return JSON.parse(line);
      if (line === null || performance.now() > deadline) {
        close();
        return undefined;
      }
      Atomics.wait(gate, 0, 0, BLOCKED_POLL_MS);
    }
  }

  function askNow(request: unknown, timeoutMs: number): unknown {
    send(request);
    return answerNow(timeoutMs);
  }

  async function* ask(requests: readonly unknown[], patience: Patience): AsyncGenerator<Answer> {
    let sent = 0;
    for (const [index] of requests.entries()) {
      while (sent < requests.length && sent < index + REQUESTS_AHEAD) send(requests[sent++]);
      const one = await answer(patience);
      yield one;
      if (one.kind === "late") return;
    }
  }

  function send(request: unknown): void {
    try {
      if (!isClosed) writeSync(peer.fd, `${JSON.stringify(request)}\n`);
    } catch {
      // It has ended, and its answer will be missing.
      close();
    }
  }

  function close(): void {
    if (isClosed) return;
    isClosed = true;
    peer.stop();
    hung += 1;
    void peer.ended.then(() => (hung -= 1));
  }

  return { answer, answerNow, ask, askNow, close, ended: peer.ended };
}
