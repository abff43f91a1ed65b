import { describe, expect, test } from "vitest";
import { runLoop } from "../../src/agent/agent.ts";
import type { Pace } from "../../src/agent/pace.ts";
import type { AgentEvent } from "../../src/agent/state/state.ts";
import { openStore } from "../../src/agent/state/store.ts";
import { freshState } from "./metrics/agent-state.ts";

/** A pace that never waits, and records its calls. */
function noted(hinted: boolean): { readonly pace: Pace; readonly calls: string[] } {
  const calls: string[] = [];
  const pace: Pace = {
    hint: () => undefined,
    dueAt: (atMs) => calls.push(atMs > performance.now() ? "scan again later" : "scan again now"),
    scanned: () => calls.push("scanned"),
    failed: () => calls.push("failed"),
    scanEvery: () => undefined,
    wait: () => Promise.resolve({ hinted }),
  };
  return { pace, calls };
}

/** Runs this many cycles, each of which does this. */
async function cycles(count: number, work: () => void, hinted = false) {
  const stop = new AbortController();
  const store = openStore(freshState());
  const events: AgentEvent[] = [];
  store.onEvent((event) => events.push(event));
  const { pace, calls } = noted(hinted);
  let done = 0;
  const cycle = async (): Promise<void> => {
    done++;
    if (done === count) stop.abort();
    work();
  };
  await runLoop({ pace, store, cycle, stop: stop.signal });
  return { calls, events, ...store.state() };
}

describe("scan loop", () => {
  test("runs until it is stopped", async () => {
    const { calls } = await cycles(3, () => undefined);

    expect(calls).toEqual(["scanned", "scanned", "scanned"]);
  });

  test("counts a cycle that throws, leaves its minute unknown, and runs the next one", async () => {
    const { calls, events, totals, timeline } = await cycles(2, () => {
      throw new Error("no snapshot");
    });

    expect(calls).toEqual(["failed", "failed"]);
    expect(events).toEqual([
      { kind: "scan-failed", reason: "no snapshot" },
      { kind: "scan-failed", reason: "no snapshot" },
    ]);
    expect(totals.scansFailed).toBe(2);
    expect(timeline.at(-1)).toMatchObject({ unknown: true });
  });

  test("scans a second time after a hint, because the cause may still be in flight", async () => {
    expect((await cycles(1, () => undefined, true)).calls).toEqual(["scanned", "scan again later"]);
  });
});
