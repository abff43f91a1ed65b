import { describe, expect, test } from "vitest";
import type { ClassPolicy } from "../../src/agent/policy/agent-policy.ts";
import { AttemptBook } from "../../src/agent/policy/attempts.ts";
import { refuse } from "../../src/heal/outcome.ts";
import { failed, read, valueOr } from "../../src/host/source.ts";
import type { PlannedAction } from "../../src/plan/plan.ts";
import {
  addressOf,
  ago,
  containerOf,
  idOf,
  LOST,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";
import { type ActingAgent, actingAgent, healing } from "./acting-agent.ts";

const CLASS = "dead-after-crash";
const GHOST = `${CLASS}/${idOf("a")}`;
/** Died with the node an hour ago. */
const ghostly: NodeParts = {
  sandboxes: [sandboxOf("a", { createdSecondsAgo: 7200 })],
  containers: [containerOf("a", { exit: LOST })],
  records: [recordOf("a")],
  addresses: [addressOf("a", "10.88.0.2")],
};

function withClass(agent: ActingAgent, change: Partial<ClassPolicy>): void {
  const known = agent.policy.classes.get(CLASS);
  if (known === undefined) throw new Error(`there is no class ${CLASS}`);
  agent.policy = { ...agent.policy, classes: new Map(agent.policy.classes).set(CLASS, { ...known, ...change }) };
}

function kinds({ events }: ActingAgent): readonly string[] {
  return events.map(({ kind }) => kind).filter((kind) => kind !== "scanned" && kind !== "verdict");
}

function standing(agent: ActingAgent): string | undefined {
  return agent.state().sightings[0]?.standing.kind;
}

describe("one cycle", () => {
  test("heals a finding, publishes it and clears it", async () => {
    const agent = actingAgent();
    agent.node = ghostly;

    await agent.round();

    expect(agent.healed.map(({ actions }) => actions.map(({ finding }) => finding.id))).toEqual([[GHOST]]);
    expect(kinds(agent)).toEqual(["detected", "healed"]);
    const { sightings, totals, heals, timeline } = agent.state();
    expect(sightings).toEqual([]);
    expect(totals.heals.get(`${CLASS} healed`)).toBe(1);
    expect(heals).toMatchObject([{ finding: GHOST, outcome: "healed" }]);
    expect(timeline.reduce((sum, { healed }) => sum + healed, 0)).toBe(1);
  });

  test("publishes `gone` for a finding that disappears without a healing", async () => {
    const agent = actingAgent();
    withClass(agent, { minAgeMs: 60_000 });
    agent.node = ghostly;
    await agent.round();

    agent.node = {};
    await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused", "gone"]);
  });

  test("publishes a wait once, however often it is scanned, and requests a scan for its end", async () => {
    const agent = actingAgent();
    withClass(agent, { minAgeMs: 60_000 });
    agent.node = ghostly;

    for (let count = 0; count < 5; count++) await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused"]);
    expect(agent.state().totals.refusals.get("min-age")).toBe(1);
    const firstSeen = agent.state().sightings[0]?.firstSeenMs ?? 0;
    expect(agent.due).toContain(firstSeen + 60_000);
    expect(standing(agent)).toBe("waiting");
  });

  test("a class that is only observed is shown and never touched", async () => {
    const agent = actingAgent();
    withClass(agent, { mode: "observe" });
    agent.node = ghostly;

    await agent.round();

    expect([agent.healed, standing(agent)]).toEqual([[], "observed"]);
  });

  test("gives up after its budget, loudly and once", async () => {
    const agent = actingAgent();
    withClass(agent, { attempts: 2, coolDownMs: 0 });
    agent.node = ghostly;
    agent.heal = (shown, order) => healing(agent.healed, shown, order, "failed", () => ghostly);

    for (let count = 0; count < 5; count++) await agent.round();

    expect(agent.healed).toHaveLength(2);
    expect(kinds(agent).filter((kind) => kind === "given-up")).toHaveLength(1);
    expect(agent.state().sightings[0]?.standing).toMatchObject({ kind: "given-up", next: expect.any(String) });
  });

  test("gives up without a try on what an agent before it has spent the budget of", async () => {
    const attempts = new AttemptBook();
    const first = actingAgent({ attempts });
    withClass(first, { attempts: 2, coolDownMs: 0 });
    first.node = ghostly;
    first.heal = (shown, order) => healing(first.healed, shown, order, "failed", () => ghostly);
    for (let count = 0; count < 2; count++) await first.round();

    const second = actingAgent({ attempts: new AttemptBook(attempts.ledger) });
    second.policy = first.policy;
    second.node = ghostly;
    await second.round();

    expect([first.healed.length, second.healed, standing(second)]).toEqual([2, [], "given-up"]);
  });

  test("what is under way is on record before its end", async () => {
    const attempts = new AttemptBook();
    const agent = actingAgent({ attempts });
    agent.node = ghostly;
    const recorded: unknown[] = [];
    agent.heal = (shown, order) => {
      const result = healing(agent.healed, shown, order, "healed", () => ({}));
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
    agent.node = ghostly;
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

  test("a healing that throws is a failed attempt for each started action, and the agent goes on", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
    agent.heal = (planned, { onBegin }) => {
      onBegin(planned);
      throw new Error("unexpected");
    };

    await agent.round();

    expect(agent.events).toContainEqual(
      expect.objectContaining({
        kind: "heal-failed",
        record: expect.objectContaining({ reason: "unexpected" }),
      }),
    );
    expect(standing(agent)).toBe("waiting");
  });

  test("a scan that throws changes nothing", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
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

  test("while the runtime cannot be seen, nothing counts as gone, and first sight stays first sight", async () => {
    const agent = actingAgent();
    withClass(agent, { mode: "observe" });
    agent.node = ghostly;
    await agent.round();
    const [before] = agent.state().sightings;

    agent.node = {};
    agent.sources = {
      cri: failed("down"),
      runtime: { endpoint: "", reachable: false, name: "", version: "" },
    };
    await agent.round();
    agent.node = ghostly;
    agent.sources = {};
    await agent.round();

    expect(kinds(agent)).toEqual(["detected", "refused"]);
    expect(agent.state().sightings[0]?.firstSeenMs).toBe(before?.firstSeenMs);
  });

  test("scans go on while a healing hangs, one healing at a time", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
    const { promise: hanging, resolve: end } = Promise.withResolvers<void>();
    agent.heal = async (shown, order) => {
      order.onBegin(shown);
      await hanging;
      return healing(agent.healed, shown, order, "healed", () => ({}));
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

  test("heals only what disrupts no pod while other nodes hold the slots, and the rest waits for a slot", async () => {
    const agent = actingAgent();
    const both = [sandboxOf("a", { createdSecondsAgo: 7200 }), sandboxOf("b", { createdSecondsAgo: 7200 })];
    const containers = [containerOf("a", { exit: LOST }), containerOf("b", { exit: LOST })];
    agent.node = { ...ghostly, sandboxes: both, containers, records: [recordOf("a"), recordOf("b")] };
    const isHarmless = ({ finding }: PlannedAction): boolean => finding.id.endsWith(idOf("b"));
    agent.gate = (actions) =>
      Promise.resolve({ kind: "wait", reason: "slots", message: "3 of 3 heal", meanwhile: actions.filter(isHarmless) });
    agent.heal = (shown, order) => healing(agent.healed, shown, order, "healed", () => ghostly);

    await agent.round();

    const healed = agent.healed.flatMap(({ actions }) => actions.map(({ finding }) => finding.id));
    expect(healed).toEqual([`${CLASS}/${idOf("b")}`]);
    expect(agent.state().pauseReason).toEqual({ reason: "slots", message: "3 of 3 heal" });
    expect(agent.state().sightings.map(({ finding, standing: { kind } }) => [finding.id, kind])).toEqual([
      [GHOST, "waiting"],
    ]);
  });

  test("while the fleet's breaker is open nothing is healed, and each refusal is published", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
    agent.gate = () =>
      Promise.resolve({ kind: "wait", reason: "breaker", message: "half of the fleet is ill", meanwhile: [] });

    for (let count = 0; count < 3; count++) await agent.round();

    expect(agent.healed).toEqual([]);
    expect(agent.state().pauseReason).toEqual({ reason: "breaker", message: "half of the fleet is ill" });
    expect(kinds(agent)).toEqual(["detected", "refused", "refused"]);
  });

  test("gives its place in the fleet back whatever becomes of the healing", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
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

  test("an unexpected error during a healing is reported, and the next scan runs", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
    agent.gate = () => Promise.reject(new Error("the gate fell down"));

    await agent.round();
    await agent.round();

    expect(agent.lost.map(String)).toEqual(["Error: the gate fell down", "Error: the gate fell down"]);
    expect(agent.state().totals.scans).toBe(2);
  });

  test("nothing is touched on a node that is paused", async () => {
    const agent = actingAgent();
    agent.node = ghostly;
    agent.sources = {
      kubernetes: { source: "api", pods: [], holds: { paused: true, node: false, namespaces: [] } },
    };

    await agent.round();

    expect(agent.healed).toEqual([]);
    expect(agent.state().pauseReason?.reason).toBe("paused");
  });

  test("its own pod is never treated", async () => {
    const agent = actingAgent({ ownPodUid: "a" });
    agent.node = ghostly;

    await agent.round();

    expect([agent.healed, standing(agent)]).toEqual([[], "observed"]);
  });
});

describe("a scan while something is being healed", () => {
  const corrupt: NodeParts = { ...ghostly, results: [resultOf("a", "empty")] };
  const CORRUPT = `libcni-result-cache-corrupt/${idOf("a")}`;
  const findings = (agent: ActingAgent) => agent.state().scan?.report.findings.map(({ id }) => id);

  test.each<readonly [string, NodeParts]>([
    ["is merely dead, without its cache", ghostly],
    ["is removed, and its address not yet released", { addresses: [addressOf("a", "10.88.0.2")] }],
    ["is removed, and its containerd lease not yet", { leases: [{ id: idOf("a"), createdAt: ago(7200) }] }],
  ])("detects nothing new where it %s", async (_, halfway) => {
    const agent = actingAgent();
    agent.node = corrupt;
    let during: readonly string[] | undefined;
    agent.heal = async (shown, order) => {
      order.onBegin(shown);
      agent.node = halfway;
      await agent.cycle.run();
      during = findings(agent);
      agent.node = {};
      await order.scan();
      return await healing(agent.healed, shown, order, "healed", () => ({}));
    };

    await agent.round();
    await agent.round();

    expect(during).toEqual([CORRUPT]);
    expect(kinds(agent)).toEqual(["detected", "healed"]);
    expect(agent.state().sightings).toEqual([]);
    expect(agent.state().timeline.at(-1)?.ghosts).toBe(1);
  });

  test("does not bring back what was healed before it ended", async () => {
    const agent = actingAgent();
    agent.node = corrupt;
    const healed = Promise.withResolvers<void>();
    let late: Promise<void> = Promise.resolve();
    agent.heal = async (shown, order) => {
      agent.node = ghostly;
      agent.pause = () => healed.promise;
      late = agent.cycle.run();
      agent.pause = () => Promise.resolve();
      agent.node = {};
      await order.scan();
      return await healing(agent.healed, shown, order, "healed", () => ({}));
    };

    await agent.round();
    healed.resolve();
    await late;

    expect(kinds(agent)).toEqual(["detected", "healed"]);
    expect(findings(agent)).toEqual([]);
  });
});

test("a sandbox that another class explains now is still the same sighting", async () => {
  const agent = actingAgent();
  withClass(agent, { minAgeMs: 60_000 });
  agent.node = ghostly;
  await agent.round();
  const [before] = agent.state().sightings;
  agent.gate = () => Promise.resolve({ kind: "wait", reason: "slots", message: "others first", meanwhile: [] });
  agent.node = { ...ghostly, results: [resultOf("a", "empty")] };

  await agent.round();

  expect(agent.state().sightings).toMatchObject([
    { firstSeenMs: before?.firstSeenMs, finding: { class: "libcni-result-cache-corrupt" } },
  ]);
  expect(kinds(agent).filter((kind) => kind === "detected" || kind === "gone")).toEqual(["detected"]);
});

describe("a change of the verdict", () => {
  const verdicts = ({ events }: ActingAgent) => events.filter(({ kind }) => kind === "verdict");

  test("is published once, with problem and next step", async () => {
    const agent = actingAgent();
    agent.sources = { cri: failed("the runtime does not answer", "Restart containerd.") };
    await agent.round();
    await agent.round();
    agent.sources = {};
    await agent.round();

    expect(verdicts(agent)).toEqual([
      {
        kind: "verdict",
        to: "unknown",
        problem: expect.stringContaining("cri: the runtime does not answer"),
        next: "Restart containerd.",
      },
      { kind: "verdict", from: "unknown", to: "healthy", problem: expect.any(String), next: expect.any(String) },
    ]);
  });

  test("is not what a healthy node starts with", async () => {
    const agent = actingAgent();
    await agent.round();

    expect(verdicts(agent)).toEqual([]);
  });
});

describe("a Status that hangs behind a plugin", () => {
  test("is published as blocked pods, and scanned again when the plugin's minute is over", async () => {
    const agent = actingAgent({ diagnosis: PATIENT });
    const records = [recordOf("a", { hasCniResult: false })];
    agent.node = { records, plugins: [pluginFor("a", "ADD", 20)] };
    const facts = valueOr(snapshotOf(agent.node).cri, undefined);
    if (facts === undefined) throw new Error("the builder reads CRI");
    agent.sources = { cri: read({ ...facts, statusHangsMs: 2000 }) };

    const before = performance.now();
    await agent.round();
    await agent.round();

    expect(kinds(agent)).toEqual(["degraded"]);
    const [dueMs = 0] = agent.due;
    expect(Math.round((dueMs - before) / 1000)).toBeGreaterThanOrEqual(40);
    expect(dueMs).toBeLessThan(performance.now() + 41_000);
  });
});
