import { expect, test } from "vitest";
import { classes } from "../../../src/classes/index.ts";
import { policyFrom } from "../../../src/cli/settings/policy.ts";

const policy = policyFrom({});

test.each([
  ["dead-after-crash", "heal"],
  ["libcni-result-cache-corrupt", "heal"],
  ["hostlocal-ip-leak-after-reboot", "heal"],
  ["volume-attachment-stuck", "observe"],
  ["bolt-corruption", "observe"],
  ["cni-daemon-socket-down", "observe"],
  ["retained-notready", "observe"],
] as const)("by default the agent's mode for %s is %s", (id, mode) => {
  expect(policy.classes.get(id)?.mode).toBe(mode);
});

test("every class of the catalogue has a policy", () => {
  expect([...policy.classes.keys()].toSorted()).toEqual(classes.map(({ id }) => id).toSorted());
});

test("heals what a pod waits for at first sight, and leaks after a minimum age", () => {
  expect(policy.classes.get("dead-after-crash")?.minAgeMs).toBe(0);
  expect(policy.classes.get("libcni-result-cache-corrupt")?.minAgeMs).toBe(0);
  expect(policy.classes.get("hostlocal-ip-leak-after-reboot")?.minAgeMs).toBeGreaterThan(0);
});

test("every budget can be spent: its back-offs fit into its period", () => {
  for (const [id, { attempts, attemptsWithinMs, coolDownMs }] of policy.classes) {
    const pauses = coolDownMs * (2 ** (attempts - 1) - 1);

    expect(pauses, id).toBeLessThan(attemptsWithinMs);
  }
});
