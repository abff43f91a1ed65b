import { describe, expect, test } from "vitest";
import { soak } from "../../bench/agent-soak-run.ts";
import { UNGHOST } from "./unghost.ts";

const GUARD_MS = 600_000;

describe("the agent under random faults", { timeout: GUARD_MS }, () => {
  test("heals every one of 200 random faults and stops in order", async () => {
    const { complaints, rounds } = await soak({ unghost: UNGHOST, faults: 200, seed: 7 });

    expect(complaints).toEqual([]);
    expect(rounds.at(-1)?.faults).toBe(200);
  });
});
