import { describe, expect, test } from "vitest";
import type { PlannedAction } from "../../src/plan/plan.ts";
import { containerOf, idOf, LOST, recordOf, sandboxOf } from "../support/snapshot-builder.ts";
import { actingAgent, healing } from "./acting-agent.ts";
import { CLASS, GHOST, kinds, WITH_GHOST } from "./node-with-ghost.ts";

describe("one cycle in a fleet", () => {
  test("heals only what disrupts no pod while other nodes hold the slots, and the rest waits for a slot", async () => {
    const agent = actingAgent();
    const both = [sandboxOf("a", { createdSecondsAgo: 7200 }), sandboxOf("b", { createdSecondsAgo: 7200 })];
    const containers = [containerOf("a", { exit: LOST }), containerOf("b", { exit: LOST })];
    agent.node = { ...WITH_GHOST, sandboxes: both, containers, records: [recordOf("a"), recordOf("b")] };
    const isHarmless = ({ finding }: PlannedAction): boolean => finding.id.endsWith(idOf("b"));
    agent.gate = (actions) =>
      Promise.resolve({ kind: "wait", reason: "slots", message: "3 of 3 heal", meanwhile: actions.filter(isHarmless) });
    agent.heal = (shown, order) => healing(agent, shown, order, "healed", () => WITH_GHOST);

    await agent.round();

    const healed = agent.healed.flatMap(({ actions }) => actions.map(({ finding }) => finding.id));
    expect(healed).toEqual([`${CLASS}/${idOf("b")}`]);
    expect(agent.state().pauseReason).toEqual({ reason: "slots", message: "3 of 3 heal" });
    expect(agent.state().sightings.map(({ finding, standing: { kind } }) => [finding.id, kind])).toEqual([
      [GHOST, "waiting"],
    ]);
  });

  test("heals nothing while the fleet's breaker is open, and publishes each refusal", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    agent.gate = () =>
      Promise.resolve({ kind: "wait", reason: "breaker", message: "half of the fleet is ill", meanwhile: [] });

    for (let count = 0; count < 3; count++) await agent.round();

    expect(agent.healed).toEqual([]);
    expect(agent.state().pauseReason).toEqual({ reason: "breaker", message: "half of the fleet is ill" });
    expect(kinds(agent)).toEqual(["detected", "refused", "refused"]);
  });

  test("releases its fleet slot however the heal ends", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    let released = 0;
    agent.gate = () =>
      Promise.resolve({
        kind: "go",
        release: async () => {
          released++;
        },
      });
    agent.heal = () => Promise.reject(new Error("broken"));

    await agent.round();

    expect(released).toBe(1);
  });
});
