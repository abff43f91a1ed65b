import { MEMORY_CHILD } from "./memory-child.ts";
import type { MountAnswer, MountRequest } from "./mount-child.ts";
import { openReaderNow, type Reader } from "./reader.ts";

/**
 * Calls on a file system that answered before and may stop at any call. A child makes them: this thread waits for its
 * answer, and not in the kernel.
 */

/** For each call. A server that is slower is of no use to a scan. */
const TIMEOUT_MS = 500;

let reader: Reader | undefined;
let stuck = 0;

/** Undefined if there is no answer in time. */
export function askMount(request: MountRequest): MountAnswer | undefined {
  reader ??= openReaderNow(MEMORY_CHILD);
  const answer = reader?.askNow(request, TIMEOUT_MS) as MountAnswer | undefined;
  if (answer !== undefined || reader === undefined) return answer;
  stuck += 1;
  void reader.ended.then(() => (stuck -= 1));
  reader = undefined;
  return undefined;
}

/** Whether a child still waits for a call that was late. */
export function hasStuckCall(): boolean {
  return stuck > 0;
}

export function closeMountReader(): void {
  reader?.close();
  reader = undefined;
}
