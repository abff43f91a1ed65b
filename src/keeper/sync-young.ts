import { setTimeout as sleep } from "node:timers/promises";
import { openKeeper } from "./keeper.ts";
import type { KeptRoot } from "./kept-directories.ts";

/** Syncs once what changed within the last minute. Does not wait for a hung disk longer than `mostMs`. */
export async function syncYoung(roots: () => readonly KeptRoot[], mostMs: number): Promise<void> {
  const keeper = openKeeper({ roots, onLost: () => undefined });
  try {
    await Promise.race([keeper.started, sleep(mostMs, undefined, { ref: false })]);
  } finally {
    keeper.close();
  }
}
