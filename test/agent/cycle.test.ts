import { describe, expect, test } from "vitest";
import { AttemptBook } from "../../src/agent/policy/attempts.ts";
import { refuse } from "../../src/heal/state/outcome.ts";
import { failed } from "../../src/host/source.ts";
import { actingAgent, healing } from "./acting-agent.ts";
import { CLASS, GHOST, kinds, standing, WITH_GHOST, withClass } from "./node-with-ghost.ts";

describe("one cycle", () => {
  test("heals a finding, publishes it and clears it", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;

    await agent.round();

    expect(agent.healed.map(({ actions }) => actions.map(({ finding }) => finding.id))).toEqual([[GHOST]]);
    expect(kinds(agent)).toEqual(["detected", "healed"]);
    const { sightings, totals, heals, timeline } = agent.state();
    expect(sightings).toEqual([]);
    expect(totals.heals.get(`${CLASS} healed`)).toBe(1);
    expect(heals).toMatchObject([{ finding: GHOST, outcome: "healed" }]);
    expect(timeline.reduce((sum, { healed }) => sum + healed, 0)).toBe(1);
  });

  test("plans twice in a cycle that heals: for the scan that finds, and for the one that verifies", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;

    await agent.round();

    expect([agent.healed.length, agent.planned]).toEqual([1, 2]);
  });

  test("publishes `gone` for a finding that disappears without a heal", async () => {
    const agent = actingAgent();
    withClass(agent, { minAgeMs: 60_000 });
    agent.node = WITH_GHOST;
    await agent.round();

    agent.node = {};
    await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused", "gone"]);
  });

  test("publishes a wait once, however often it is scanned, and requests a scan at its end", async () => {
    const agent = actingAgent();
    withClass(agent, { minAgeMs: 60_000 });
    agent.node = WITH_GHOST;

    for (let count = 0; count < 5; count++) await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused"]);
    expect(agent.state().totals.refusals.get("min-age")).toBe(1);
    const firstSeen = agent.state().sightings[0]?.firstSeenMs ?? 0;
    expect(agent.due).toContain(firstSeen + 60_000);
    expect(standing(agent)).toBe("waiting");
  });

  test("knows how often a finding failed, and when it is tried again, for as long as it waits", async () => {
    const attempts = new AttemptBook();
    const agent = actingAgent({ attempts });
    agent.heal = (shown, order) => healing(agent, shown, order, "failed", () => WITH_GHOST);
    agent.node = WITH_GHOST;
    agent.failures = new Map([[GHOST, { times: 2, lastAt: "2026-03-01T12:00:00Z", reason: "refused" }]]);

    await agent.round();
    const [first] = agent.state().sightings;
    await agent.round();
    const [second] = agent.state().sightings;

    expect(first?.finding.failedHeals).toMatchObject({ times: 2, reason: "refused" });
    expect(first?.nextTryAt?.getTime()).toBeGreaterThan(Date.now());
    expect(second?.nextTryAt).toEqual(first?.nextTryAt);
    expect(attempts.outlook.get(GHOST)?.nextTryAt).toBe(first?.nextTryAt?.toISOString().replace(".000Z", "Z"));
  });

  test("shows with a finding that waits what will be done", async () => {
    const agent = actingAgent();
    withClass(agent, { minAgeMs: 60_000 });
    agent.node = WITH_GHOST;

    await agent.round();

    expect(agent.state().sightings.map(({ finding }) => finding.plan?.steps)).toEqual([
      [
        "save its logs and remove it through the runtime",
        "if left, release the IP addresses it still holds: 10.88.0.2 of cbr0",
      ],
    ]);
  });

  test("shows an observed class and never heals it", async () => {
    const agent = actingAgent();
    withClass(agent, { mode: "observe" });
    agent.node = WITH_GHOST;

    await agent.round();

    expect([agent.healed, standing(agent)]).toEqual([[], "observed"]);
  });

  test("gives up when the budget is spent, and logs it once", async () => {
    const agent = actingAgent();
    withClass(agent, { attempts: 2, coolDownMs: 0 });
    agent.node = WITH_GHOST;
    agent.heal = (shown, order) => healing(agent, shown, order, "failed", () => WITH_GHOST);

    for (let count = 0; count < 5; count++) await agent.round();

    expect(agent.healed).toHaveLength(2);
    expect(kinds(agent).filter((kind) => kind === "given-up")).toHaveLength(1);
    expect(agent.state().sightings[0]?.standing).toMatchObject({ kind: "given-up", next: expect.any(String) });
  });

  test("gives up at once when a previous agent spent the budget", async () => {
    const attempts = new AttemptBook();
    const first = actingAgent({ attempts });
    withClass(first, { attempts: 2, coolDownMs: 0 });
    first.node = WITH_GHOST;
    first.heal = (shown, order) => healing(first, shown, order, "failed", () => WITH_GHOST);
    for (let count = 0; count < 2; count++) await first.round();

    const second = actingAgent({ attempts: new AttemptBook(attempts.ledger) });
    second.policy = first.policy;
    second.node = WITH_GHOST;
    await second.round();

    expect([first.healed.length, second.healed, standing(second)]).toEqual([2, [], "given-up"]);
  });

  test("records an attempt before it ends", async () => {
    const attempts = new AttemptBook();
    const agent = actingAgent({ attempts });
    agent.node = WITH_GHOST;
    const recorded: unknown[] = [];
    agent.heal = (shown, order) => {
      const result = healing(agent, shown, order, "healed", () => ({}));
      recorded.push(attempts.ifEndedNow(0).get(GHOST)?.attempts);
      return result;
    };

    await agent.round();

    expect(recorded).toMatchObject([[{ outcome: "interrupted" }]]);
    expect(attempts.ledger.get(GHOST)?.attempts).toMatchObject([{ outcome: "healed" }]);
  });

  test.each([
    ["lock", refuse("Another run is under way.", "Wait.", "lock")],
    ["disk", refuse("The disk is full.", "Free some space.", "disk")],
    ["guard", refuse("The state directory is a link.", "Give another.")],
  ] as const)("a refused session (%s) is shown, published once, retried and then cleared", async (reason, refusal) => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    const heal = agent.heal;
    agent.heal = () => Promise.resolve(refusal);

    for (let count = 0; count < 3; count++) await agent.round();

    expect(agent.state().pauseReason).toEqual({
      reason,
      message: `${refusal.refusal.message} ${refusal.refusal.next}`,
    });
    expect(agent.state().totals.refusals.get(reason)).toBe(2);
    expect(agent.due.at(-1)).toBeGreaterThan(performance.now());
    expect(standing(agent)).toBe("waiting");
    agent.heal = heal;
    agent.node = {};
    await agent.round();
    expect(agent.state().pauseReason).toBeUndefined();
  });

  test("counts a heal that throws as a failed attempt of each started action, and continues", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    agent.heal = ({ plan }, { sinks }) => {
      sinks.begin?.(plan, []);
      throw new Error("unexpected");
    };

    await agent.round();

    expect(agent.events).toContainEqual(
      expect.objectContaining({ kind: "heal-failed", record: expect.objectContaining({ reason: "unexpected" }) }),
    );
    expect(standing(agent)).toBe("waiting");
  });

  test("changes nothing when the scan throws", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    withClass(agent, { mode: "observe" });
    await agent.round();
    const before = agent.state();
    Object.defineProperty(agent, "node", {
      get: () => {
        throw new Error("no snapshot");
      },
    });

    await expect(agent.cycle.run()).rejects.toThrow("no snapshot");

    expect(agent.state()).toBe(before);
  });

  test("keeps findings and first-seen times while the runtime cannot be read", async () => {
    const agent = actingAgent();
    withClass(agent, { mode: "observe" });
    agent.node = WITH_GHOST;
    await agent.round();
    const [before] = agent.state().sightings;

    agent.node = {};
    agent.sources = { cri: failed("down"), runtime: { endpoint: "", reachable: false, name: "", version: "" } };
    await agent.round();
    agent.node = WITH_GHOST;
    agent.sources = {};
    await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused"]);
    expect(agent.state().sightings[0]?.firstSeenMs).toBe(before?.firstSeenMs);
  });

  test("continues to scan while a heal hangs, with one heal at a time", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    const { promise: hanging, resolve: end } = Promise.withResolvers<void>();
    agent.heal = async (shown, order) => {
      order.sinks.begin?.(shown.plan, []);
      await hanging;
      return healing(agent, shown, order, "healed", () => ({}));
    };
    await agent.cycle.run();

    agent.node = {};
    await agent.cycle.run();
    await agent.cycle.run();

    expect(agent.state().totals.scans).toBe(3);
    expect(standing(agent)).toBe("healing");
    end();
    await agent.cycle.idle();
    expect(kinds(agent)).toEqual(["detected", "healed"]);
    expect(agent.healed).toHaveLength(1);
  });

  test("reports an unexpected error during a heal, and runs the next scan", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    agent.gate = () => Promise.reject(new Error("the gate fell down"));

    await agent.round();
    await agent.round();

    expect(agent.lost.map(String)).toEqual(["Error: the gate fell down", "Error: the gate fell down"]);
    expect(agent.state().totals.scans).toBe(2);
  });

  test("touches nothing on a paused node", async () => {
    const agent = actingAgent();
    agent.node = WITH_GHOST;
    agent.sources = { kubernetes: { source: "api", pods: [], holds: { paused: true, node: false, namespaces: [] } } };

    await agent.round();

    expect(agent.healed).toEqual([]);
    expect(agent.state().pauseReason?.reason).toBe("paused");
  });

  test("never heals its own pod", async () => {
    const agent = actingAgent({ ownPodUid: "a" });
    agent.node = WITH_GHOST;

    await agent.round();

    expect([agent.healed, standing(agent)]).toEqual([[], "observed"]);
  });
});
