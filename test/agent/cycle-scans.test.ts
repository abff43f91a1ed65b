import { describe, expect, test } from "vitest";
import { failed, read, valueOr } from "../../src/host/source.ts";
import {
  addressOf,
  ago,
  idOf,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";
import { type ActingAgent, actingAgent, healing } from "./acting-agent.ts";
import { kinds, WITH_GHOST, withClass } from "./node-with-ghost.ts";

describe("a scan during a heal", () => {
  const corrupt: NodeParts = { ...WITH_GHOST, results: [resultOf("a", "empty")] };
  const CORRUPT = `libcni-result-cache-corrupt/${idOf("a")}`;
  const findings = (agent: ActingAgent) => agent.state().scan?.report.findings.map(({ id }) => id);

  test.each<readonly [string, NodeParts]>([
    ["is dead, without its cache", WITH_GHOST],
    ["is removed, and its address not yet released", { addresses: [addressOf("a", "10.88.0.2")] }],
    ["is removed, and its containerd lease not yet deleted", { leases: [{ id: idOf("a"), createdAt: ago(7200) }] }],
  ])("detects nothing new when the sandbox %s", async (_, halfway) => {
    const agent = actingAgent();
    agent.node = corrupt;
    let during: readonly string[] | undefined;
    agent.heal = async (shown, order) => {
      order.sinks.begin?.(shown.plan, []);
      agent.node = halfway;
      await agent.cycle.run();
      during = findings(agent);
      agent.node = {};
      return await healing(agent, shown, order, "healed", () => ({}));
    };

    await agent.round();
    await agent.round();

    expect(during).toEqual([CORRUPT]);
    expect(kinds(agent)).toEqual(["detected", "healed"]);
    expect(agent.state().sightings).toEqual([]);
    expect(agent.state().timeline.at(-1)?.ghosts).toBe(1);
  });

  test("does not bring back a finding that was healed before the scan ended", async () => {
    const agent = actingAgent();
    agent.node = corrupt;
    const healed = Promise.withResolvers<void>();
    let late: Promise<void> = Promise.resolve();
    agent.heal = async (shown, order) => {
      agent.node = WITH_GHOST;
      agent.pause = () => healed.promise;
      late = agent.cycle.run();
      agent.pause = () => Promise.resolve();
      agent.node = {};
      return await healing(agent, shown, order, "healed", () => ({}));
    };

    await agent.round();
    healed.resolve();
    await late;

    expect(kinds(agent)).toEqual(["detected", "healed"]);
    expect(findings(agent)).toEqual([]);
  });
});

test("a sandbox that now has another class is still the same sighting", async () => {
  const agent = actingAgent();
  withClass(agent, { minAgeMs: 60_000 });
  agent.node = WITH_GHOST;
  await agent.round();
  const [before] = agent.state().sightings;
  agent.gate = () => Promise.resolve({ kind: "wait", reason: "slots", message: "others first", meanwhile: [] });
  agent.node = { ...WITH_GHOST, results: [resultOf("a", "empty")] };

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

  test("to unknown leaves the ghosts of that minute unknown, not 0", async () => {
    const agent = actingAgent();
    agent.sources = { cri: failed("the runtime does not answer", "Restart containerd.") };
    await agent.round();
    expect(agent.state().timeline.at(-1)).toMatchObject({ unknown: true });

    agent.sources = {};
    await agent.round();
    expect(agent.state().timeline.at(-1)).not.toHaveProperty("unknown");
  });

  test("is not published for a healthy first scan", async () => {
    const agent = actingAgent();
    await agent.round();

    expect(verdicts(agent)).toEqual([]);
  });
});

describe("a Status call that hangs behind a plugin", () => {
  test("is published as blocked pods, and scanned again after the plugin's minute", async () => {
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
