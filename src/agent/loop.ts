import { describeError } from "../host/system-error.ts";
import type { Pace } from "./pace.ts";
import type { Store } from "./store.ts";

/** What the event started is often still in flight during the scan: a network being torn down, a stop that fails late. */
const SECOND_GLANCE_MS = 2000;

export interface LoopOptions {
  readonly pace: Pace;
  readonly store: Store;
  readonly cycle: () => Promise<void>;
  /** Starts nothing further. */
  readonly stop: AbortSignal;
}

/** Scans whenever it is time to, until it is asked to stop. Whatever a scan throws is logged and counted, and the next waits. */
export async function runLoop({ pace, store, cycle, stop }: LoopOptions): Promise<void> {
  for (;;) {
    const { hinted } = await pace.wait(stop);
    if (stop.aborted) return;
    const before = process.cpuUsage();
    try {
      await cycle();
      const { user, system } = process.cpuUsage(before);
      pace.scanned((user + system) / 1000);
      if (hinted) pace.dueAt(performance.now() + SECOND_GLANCE_MS);
    } catch (thrown) {
      pace.failed();
      store.update((state) => ({
        ...state,
        totals: { ...state.totals, scansFailed: state.totals.scansFailed + 1 },
      }));
      store.publish({ kind: "scan-failed", reason: describeError(thrown) });
    }
  }
}
