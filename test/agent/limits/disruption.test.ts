import { expect, test } from "vitest";
import { byDisruption } from "../../../src/agent/limits/gate.ts";
import { ENDING, KICK, QUARANTINE, REMOVAL } from "./actions.ts";

test("quarantining cache files disrupts no pod, however many there are", () => {
  const many = Array.from({ length: 100 }, () => QUARANTINE);

  expect(byDisruption(many)).toEqual({ disruptive: [], harmless: many });
});

test("removing a few dead sandboxes is not disruptive, dozens are", () => {
  const few = Array.from({ length: 5 }, () => REMOVAL);
  const many = Array.from({ length: 6 }, () => REMOVAL);

  expect(byDisruption(few).disruptive).toEqual([]);
  expect(byDisruption([...many, QUARANTINE])).toEqual({ disruptive: many, harmless: [QUARANTINE] });
});

test("ending a process and restarting a pod are always disruptive", () => {
  expect(byDisruption([ENDING, QUARANTINE, KICK])).toEqual({ disruptive: [ENDING, KICK], harmless: [QUARANTINE] });
});
