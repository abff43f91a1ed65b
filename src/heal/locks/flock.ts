import { type Outcome, ok, refuse } from "../outcome.ts";
import { takeKernelLock } from "./kernel-lock.ts";

/** Runs `work` under the flock(2) that another program takes on this file, host-local for one. */
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
