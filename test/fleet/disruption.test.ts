import { expect, test } from "vitest";
import { byDisruption } from "../../src/fleet/gate.ts";
import { actionOf, ENDING, KICK, QUARANTINE, REMOVAL } from "./actions.ts";

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

test("ending a process, restarting a pod and detaching a volume are always disruptive", () => {
  const detach = actionOf([{ kind: "delete-volume-attachment", name: "a", uid: "1", node: "n1", volume: "v" }]);

  expect(byDisruption([ENDING, QUARANTINE, KICK, detach])).toEqual({
    disruptive: [ENDING, KICK, detach],
    harmless: [QUARANTINE],
  });
});
