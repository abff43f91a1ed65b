import type { Readable } from "node:stream";
import { type ChildEnd, describeEnd, outputEnded, startChild } from "./start-child.ts";

export interface RunOptions {
  /** Written to its standard input, which is then closed. */
  readonly input?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Of each stream; the rest is dropped. */
  readonly maxOutputBytes?: number;
  /** Between SIGTERM and SIGKILL after the timeout. */
  readonly graceMs?: number;
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
