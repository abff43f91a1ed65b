import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { describeError } from "../../host/source.ts";
import { MAX_HEAD_BYTES, type RequestHead, readHead } from "./request-head.ts";

export type Headers = Readonly<Record<string, string | readonly string[]>>;

export interface Answer {
  readonly status: number;
  readonly body: string | Buffer;
  readonly headers: Headers;
}

/** A response without an end: the socket belongs to the subscriber from then on. */
export interface Subscription {
  readonly status: number;
  readonly headers: Headers;
  readonly subscribe: (socket: Socket) => void;
}

export interface Requests {
  /** Rejects if there is none; the connection is then closed. */
  readonly reply: (request: RequestHead) => Promise<Answer | Subscription>;
  /** Answers in flight are completed, and no further request is read. */
  readonly closing: AbortSignal;
}

const LIMITS = {
  /** For the first request, from its connection on. */
  headMs: 5000,
  /** For each further request on the same connection. */
  nextHeadMs: 30_000,
  /** For sending one answer. */
  sendMs: 30_000,
  /** For the client to close its side. */
  lingerMs: 500,
  /** An unread body is dropped up to this, so that the client reads the answer before a reset. */
  droppedBytes: 64 * 1024,
};

/** A socket copies what it could not send yet: only one such part of an answer is in memory twice. */
const PART_BYTES = 64 * 1024;

/**
 * Answers the requests of one connection, one after the other: nothing is read while an answer is made or sent. Not
 * node:http, because Bun's reads and answers pipelined requests whether or not the client reads the answers.
 */
export async function serveConnection(socket: Socket, { reply, closing }: Requests): Promise<void> {
  socket.pause();
  // A reset by the client: the close event follows.
  socket.on("error", () => undefined);
  let received: Buffer = Buffer.alloc(0);
  for (let waitMs = LIMITS.headMs; ; waitMs = LIMITS.nextHeadMs) {
    const { read, isComplete } = await nextHead(socket, received, waitMs, closing);
    if (read === undefined) {
      if (!isComplete) await send(socket, refusal(408, "The request did not arrive in time."), { isLast: true });
      return finish(socket);
    }
    const { head, rest } = read;
    if ("reason" in head) {
      await send(socket, refusal(head.status, head.reason), { isLast: true });
      return finish(socket);
    }
    received = rest;
    const answer = await reply(head).catch((error: unknown) => {
      throw new Error(`${head.method} ${head.target}: ${describeError(error)}`, { cause: error });
    });
    const isLast = head.isLast || closing.aborted || rest.length > MAX_HEAD_BYTES;
    if ("subscribe" in answer) return follow(socket, answer);
    await send(socket, answer, { isLast, hasBody: head.method !== "HEAD" });
    if (isLast) return finish(socket);
  }
}

/** `isComplete` is false when a request began and did not end in time. */
interface NextHead {
  readonly read?: NonNullable<ReturnType<typeof readHead>>;
  readonly isComplete: boolean;
}

function nextHead(socket: Socket, before: Buffer, waitMs: number, closing: AbortSignal): Promise<NextHead> {
  const { promise, resolve } = Promise.withResolvers<NextHead>();
  const ending = ["end", "close"];
  let received = before;

  /** At once, because data that arrives between here and the next call must stay in the socket. */
  function stop(result: NextHead): void {
    clearTimeout(timer);
    socket.pause();
    socket.off("data", onData);
    for (const event of ending) socket.off(event, onEnd);
    closing.removeEventListener("abort", onEnd);
    resolve(result);
  }
  function onData(chunk: Buffer): void {
    received = Buffer.concat([received, chunk]);
    const read = readHead(received);
    if (read !== undefined) stop({ read, isComplete: true });
  }
  function onEnd(): void {
    stop({ isComplete: true });
  }

  const timer = setTimeout(() => stop({ isComplete: received.length === 0 }), waitMs);
  const read = readHead(received);
  if (read !== undefined) stop({ read, isComplete: true });
  else if (socket.destroyed || socket.readableEnded || closing.aborted) onEnd();
  else {
    socket.on("data", onData);
    for (const event of ending) socket.on(event, onEnd);
    closing.addEventListener("abort", onEnd);
    socket.resume();
  }
  return promise;
}

interface Sending {
  readonly isLast: boolean;
  readonly hasBody?: boolean;
}

/** Resolves when the kernel has all of it, or the connection is closed. */
async function send(socket: Socket, answer: Answer, { isLast, hasBody = true }: Sending): Promise<void> {
  const late = setTimeout(() => socket.destroy(), LIMITS.sendMs);
  const body = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  const length = { "content-length": String(body.length) };
  const head = Buffer.from(headOf({ ...answer, headers: { ...length, ...answer.headers } }, { isLast }), "latin1");
  await write(socket, hasBody ? Buffer.concat([head, body.subarray(0, PART_BYTES)]) : head);
  for (let from = PART_BYTES; hasBody && from < body.length && !socket.destroyed; from += PART_BYTES) {
    await write(socket, body.subarray(from, from + PART_BYTES));
  }
  clearTimeout(late);
}

function write(socket: Socket, part: Buffer): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const onClose = (): void => resolve();
    socket.once("close", onClose);
    socket.write(part, () => {
      socket.off("close", onClose);
      resolve();
    });
  });
}

function follow(socket: Socket, { subscribe, ...answer }: Subscription): void {
  if (socket.destroyed || socket.readableEnded) return void socket.destroy();
  socket.write(headOf(answer, { isLast: true }));
  // Its end is seen only while it is read; a client sends nothing more.
  for (const event of ["data", "end"]) socket.once(event, () => socket.destroy());
  subscribe(socket);
  socket.resume();
}

/** Closes our side; a client that does not close its own is disconnected. */
function finish(socket: Socket): void {
  let dropped = 0;
  const late = setTimeout(() => socket.destroy(), LIMITS.lingerMs);
  socket.once("close", () => clearTimeout(late));
  socket.once("end", () => socket.destroySoon());
  socket.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > LIMITS.droppedBytes) socket.destroy();
  });
  socket.end();
  socket.resume();
}

function headOf({ status, headers }: Pick<Answer, "status" | "headers">, { isLast }: Sending): string {
  const all = { date: new Date().toUTCString(), connection: isLast ? "close" : "keep-alive", ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value).map((one) => `${name}: ${one}`),
  );
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`, ...lines, "", ""].join("\r\n");
}

function refusal(status: number, reason: string): Answer {
  return { status, body: `${reason}\n`, headers: { "content-type": "text/plain; charset=utf-8" } };
}
