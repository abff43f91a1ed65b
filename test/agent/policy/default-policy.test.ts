import { expect, test } from "vitest";
import { defaultAgentPolicy } from "../../../src/agent/policy/default-policy.ts";
import { classes } from "../../../src/classes/index.ts";

const policy = defaultAgentPolicy();

test("what is safe by nature is healed, everything else is only observed", () => {
  const modes = classes.map(({ id }) => policy.classes.get(id)?.mode);

  expect(modes).toEqual(classes.map(({ treatment }) => (treatment.mode === "automatic" ? "heal" : "observe")));
});

test("what a pod waits for is healed at first sight, leaks have time", () => {
  expect(policy.classes.get("dead-after-crash")?.minAgeMs).toBe(0);
  expect(policy.classes.get("libcni-result-cache-corrupt")?.minAgeMs).toBe(0);
  expect(policy.classes.get("hostlocal-ip-leak-after-reboot")?.minAgeMs).toBeGreaterThan(0);
});

test("every budget can be spent: its pauses fit into its period", () => {
  for (const [id, { attempts, attemptsWithinMs, coolDownMs }] of policy.classes) {
    const pauses = coolDownMs * (2 ** (attempts - 1) - 1);

    expect(pauses, id).toBeLessThan(attemptsWithinMs);
  }
});
