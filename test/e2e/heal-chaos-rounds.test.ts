import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { runChaos } from "../../lab/chaos/run.ts";
import { ensureContainerd } from "../../lab/tools.ts";
import { HANG_GUARD_MS, NO_REAL_NODE } from "../lab/real-node.ts";
import { UNGHOST } from "./unghost.ts";

const ROUNDS = 15;

describe.skipIf(NO_REAL_NODE !== undefined)("heal under random faults", { timeout: HANG_GUARD_MS }, () => {
  test(`harms no running or finished pod in ${ROUNDS} rounds, and heals everything`, async () => {
    // The faults are always the same here; their timing is not. `make chaos` chooses new ones.
    const seed = 77;
    const runtimes = (await ensureContainerd()).available ? (["1.6", "2.3"] as const) : (["1.6"] as const);

    const complaints = await runChaos({
      unghost: UNGHOST,
      rounds: ROUNDS,
      seed,
      runtimes,
      visible: [dirname(UNGHOST)],
    });

    expect(complaints, `with seed ${seed}`).toEqual([]);
  });
});
