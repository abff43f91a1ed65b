import { beforeEach, describe, expect, test } from "vitest";
import { uninterrupted } from "../../src/heal/interruption.ts";
import { pool } from "../../src/heal/pool.ts";
import { stormBrake } from "../../src/heal/storm-brake.ts";
import { type Turn, turns } from "../../src/heal/turns.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";

const FIRST = 2;
const MOST = 12;
const HANG_GUARD_MS = 60_000;

interface Call {
  readonly succeed: () => void;
  readonly fail: (text: string) => void;
}

let under: Call[];
let turn: Turn;
beforeEach(() => {
  under = [];
  const places = pool({ places: MOST, firstPlaces: FIRST, patienceMs: HANG_GUARD_MS, mostBeside: 0 });
  const probes = { patienceMs: HANG_GUARD_MS, mostUnanswered: 2 };
  const next = turns({ places, brake: stormBrake(), probes, interruption: uninterrupted() });
  // How many go at a time once the water is tested.
  turn = (call) => next(call, "no-plugins");
});

/** Asks for so many turns; what is begun is listed in `under` until it is ended. What becomes of them is not looked at. */
function ask(count: number): void {
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const fail = (text: string): void => reject(new RuntimeError("refused", "RemovePodSandbox", text, ""));
      under.push({ succeed: resolve, fail });
    });
  for (let asked = 0; asked < count; asked++) turn(call).catch(() => undefined);
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

async function endFirst(end: (call: Call) => void): Promise<void> {
  const [first] = under.splice(0, 1);
  if (first === undefined) throw new Error("nothing is under way");
  end(first);
  await settled();
}

describe("turns at the runtime", () => {
  test("are few at first, and some more with each success, up to the limit", async () => {
    ask(20);
    await settled();
    expect(under).toHaveLength(FIRST);
    for (const expected of [6, 10, 12, 12]) {
      await endFirst(({ succeed }) => succeed());
      expect(under).toHaveLength(expected);
    }
  });

  test("stay few while nothing succeeds", async () => {
    ask(20);
    await settled();
    for (let times = 0; times < 2; times++) {
      await endFirst(({ fail }) => fail("something else"));
      expect(under).toHaveLength(FIRST);
    }
  });

  test("get no more with each success once there was too much to do", async () => {
    ask(30);
    await settled();
    for (let times = 0; times < 3; times++) await endFirst(({ succeed }) => succeed());
    await endFirst(({ fail }) => fail("Another app is currently holding the xtables lock"));
    const left = under.length;
    await endFirst(({ succeed }) => succeed());
    expect(under.length).toBeLessThan(left);
  });
});
