import { describe, expect, test } from "vitest";
import { runLoop } from "../../src/agent/loop.ts";
import type { Pace } from "../../src/agent/pace.ts";
import type { AgentEvent } from "../../src/agent/state.ts";
import { openStore } from "../../src/agent/store.ts";
import { freshState } from "./metrics/agent-state.ts";

/** A pace that never waits, and notes what it is told. */
function noted(hinted: boolean): { readonly pace: Pace; readonly told: string[] } {
  const told: string[] = [];
  const pace: Pace = {
    hint: () => undefined,
    dueAt: (atMs) => told.push(atMs > performance.now() ? "look again later" : "look again now"),
    looked: () => told.push("looked"),
    failed: () => told.push("failed"),
    scanEvery: () => undefined,
    wait: () => Promise.resolve({ hinted }),
  };
  return { pace, told };
}

/** Runs so many cycles, each of which does this. */
async function cycles(count: number, work: () => void, hinted = false) {
  const stop = new AbortController();
  const store = openStore(freshState());
  const events: AgentEvent[] = [];
  store.onEvent((event) => events.push(event));
  const { pace, told } = noted(hinted);
  let done = 0;
  const cycle = async (): Promise<void> => {
    done++;
    if (done === count) stop.abort();
    work();
  };
  await runLoop({ pace, store, cycle, stop: stop.signal });
  return { told, events, totals: store.state().totals };
}

describe("the loop", () => {
  test("goes on until it is asked to stop", async () => {
    const { told } = await cycles(3, () => undefined);

    expect(told).toEqual(["looked", "looked", "looked"]);
  });

  test("a cycle that throws is told and counted, and the next one comes", async () => {
    const { told, events, totals } = await cycles(2, () => {
      throw new Error("no look");
    });

    expect(told).toEqual(["failed", "failed"]);
    expect(events).toEqual([
      { kind: "scan-failed", reason: "no look" },
      { kind: "scan-failed", reason: "no look" },
    ]);
    expect(totals.scansFailed).toBe(2);
  });

  test("what a hint led to is looked at a second time: it may not have been over", async () => {
    expect((await cycles(1, () => undefined, true)).told).toEqual(["looked", "look again later"]);
  });
});
