import { readSync, writeSync } from "node:fs";
import { errorLabel } from "./source.ts";

/** Lines over a non-blocking socket, without an event loop. */

const CHUNK_BYTES = 64 * 1024;

/** A line; undefined if there is none yet; null if the other side has closed the socket. */
type NextLine = string | undefined | null;

export function lineReader(fd: number): () => NextLine {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let unfinished = "";
  return () => {
    if (lines.length > 0) return lines.shift();
    const count = orLater(() => readSync(fd, chunk, 0, chunk.length, null));
    if (count === undefined) return undefined;
    if (count === 0) return null;
    const [rest = "", ...more] = decoder.decode(chunk.subarray(0, count), { stream: true }).split("\n");
    unfinished += rest;
    for (const next of more) {
      lines.push(unfinished);
      unfinished = next;
    }
    return lines.shift();
  };
}

/** Undefined if the socket is not ready. 0 if the other side has closed it. */
function orLater(transfer: () => number): number | undefined {
  try {
    return transfer();
  } catch (error) {
    return errorLabel(error) === "EAGAIN" ? undefined : 0;
  }
}

/** Where a child of `startPeer` finds its socket. */
const SOCKET = 3;
const POLL_MS = 1;

/** A child's main loop: answers each line until the parent closes the socket. Its first line shows that it runs. */
export function serveRequests(answer: (request: unknown) => unknown): void {
  const nextLine = lineReader(SOCKET);
  const gate = new Int32Array(new SharedArrayBuffer(4));
  write("{}");
  for (let line = nextLine(); line !== null; line = nextLine()) {
    if (line === undefined) Atomics.wait(gate, 0, 0, POLL_MS);
    else write(JSON.stringify(answer(JSON.parse(line))));
  }

  function write(text: string): void {
    for (let rest = Buffer.from(`${text}\n`); rest.length > 0; ) {
      const count = orLater(() => writeSync(SOCKET, rest));
      if (count === 0) return;
      if (count === undefined) Atomics.wait(gate, 0, 0, POLL_MS);
      else rest = rest.subarray(count);
    }
  }
}
