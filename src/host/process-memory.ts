import { clearTimeout, setTimeout } from "node:timers";
import { takingTurns } from "./concurrency.ts";
import { MEMORY_CHILD, type MemoryRequest, type ProcessMemory } from "./memory-child.ts";
import type { ProcRead } from "./proc.ts";
import type { Reader } from "./reader.ts";

/**
 * Arguments and environment of other processes are in their memory. The kernel takes the lock of that memory to read
 * them, and waits as long as a thread of that process holds it: where that thread waits for a file system that does not
 * answer, forever. So a child process reads them, with a timeout for each process.
 */
export type { MemoryRequest, ProcessMemory } from "./memory-child.ts";

const TIMEOUT_MS = 500;
/** In one call; the rest then counts as late as well. */
const MOST_LATE = 4;
/** Several parts of a scan ask one after the other. */
const IDLE_MS = 500;

const LATE = { kind: "unreadable", code: "ETIMEDOUT" } satisfies ProcRead;
const UNREAD: ProcessMemory = { environ: LATE, cmdline: LATE };

/** Whether it was not read in time, because the process keeps its memory locked. */
export function isLate(read: ProcRead): boolean {
  return read.kind === "unreadable" && read.code === LATE.code;
}

const inTurn = takingTurns(1);
let reader: Promise<Reader | undefined> | undefined;
let idle: NodeJS.Timeout | undefined;
let stuck = 0;

/** Whether a child still hangs in the kernel, so that what it waits for does not answer yet. */
export function hasStuckReader(): boolean {
  return stuck > 0;
}

/** Starts the child before its first request, while other things are read. */
export function prepareToReadMemory(): void {
  reader ??= start();
  rest();
}

async function start(): Promise<Reader | undefined> {
  // Loaded on demand: modules that start processes take a millisecond to load.
  const { openReader } = await import("./reader.ts");
  return await openReader(MEMORY_CHILD);
}

function rest(): void {
  clearTimeout(idle);
  idle = setTimeout(() => {
    const unused = reader;
    reader = undefined;
    void unused?.then((one) => one?.close());
  }, IDLE_MS).unref();
}

/** One result for each request. */
export async function readMemories(
  requests: readonly MemoryRequest[],
  signal?: AbortSignal,
): Promise<readonly ProcessMemory[]> {
  return (await askAll<ProcessMemory>(requests, signal)).map((memory) => memory ?? UNREAD);
}

/** Whether the file systems of these files answer; undefined for one that does not. */
export async function probeMounts(
  mounts: readonly (readonly string[])[],
  signal?: AbortSignal,
): Promise<readonly (true | undefined)[]> {
  return await askAll<true>(
    mounts.map((probe) => ({ probe })),
    signal,
  );
}

/** Undefined for a request that was not answered in time. */
async function askAll<T>(requests: readonly unknown[], signal?: AbortSignal): Promise<readonly (T | undefined)[]> {
  if (requests.length === 0) return [];
  return await inTurn(async () => {
    const results: (T | undefined)[] = [];
    for (let late = 0; results.length < requests.length && late < MOST_LATE && signal?.aborted !== true; ) {
      clearTimeout(idle);
      reader ??= start();
      const opened = await reader;
      if (opened === undefined) {
        reader = undefined;
        break;
      }
      for await (const answer of opened.ask(requests.slice(results.length), { timeoutMs: TIMEOUT_MS, signal })) {
        results.push(answer.kind === "late" ? undefined : (answer.value as T));
        if (answer.kind === "answer") continue;
        late += 1;
        reader = undefined;
        stuck += 1;
        void opened.ended.then(() => (stuck -= 1));
      }
    }
    rest();
    return requests.map((_, index) => results[index]);
  });
}

/** The arguments of one process, if they can be read. */
export async function argumentsOf(dir: string, signal?: AbortSignal): Promise<ProcRead> {
  const [memory] = await readMemories([{ dir, environ: false, cmdline: "always" }], signal);
  return memory?.cmdline ?? LATE;
}
