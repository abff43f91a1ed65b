import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KubeError } from "../../../src/kube/errors.ts";
import { sighting } from "../page/agent-states.ts";
import { NODE, type ShownAgent, shownAgent } from "./shown-agent.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Scans once a minute, like an agent. */
async function idle({ time, scanned }: ShownAgent, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    scanned();
    await time.pass(MINUTE);
  }
}

describe("node condition", () => {
  test("exists with a healthy reason after the first scan, beside kubelet's own conditions", async () => {
    const agent = shownAgent();
    const face = agent.show();
    await agent.time.pass(1000);
    expect(agent.condition()).toBeUndefined();

    agent.scanned();
    await agent.time.pass(0);

    expect(agent.condition()).toEqual({
      type: "GhostSandboxes",
      status: "False",
      reason: "NoGhostSandboxes",
      message: "No ghost sandbox on this node",
      lastHeartbeatTime: "2026-03-01T12:00:01Z",
      lastTransitionTime: "2026-03-01T12:00:01Z",
    });
    expect(agent.cluster.store.get(NODE)?.["status"]).toMatchObject({
      conditions: [{ type: "Ready" }, { type: "GhostSandboxes" }, { type: "SandboxCreation" }],
    });
    await face.close();
  });

  test("is not written to a node that may be another machine", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned([], { kubernetes: { source: "kubelet", error: 'the cluster\'s node "n1" is another machine' } });
    await agent.time.pass(HOUR);

    expect(agent.writes()).toEqual([]);
    await face.close();
  });

  test("costs one write in five minutes while nothing changes", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(0);
    agent.writes();

    await idle(agent, 60);

    const writes = agent.writes();
    expect(writes.length).toBeLessThanOrEqual(12);
    expect(writes.length).toBeGreaterThanOrEqual(10);
    expect(new Set(writes)).toEqual(new Set([`PATCH ${NODE}/status`]));
    await face.close();
  });

  test("changes at once, and back after the heal; its transition time changes only then", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(MINUTE);

    agent.scanned([sighting()]);
    await agent.time.pass(0);
    expect(agent.condition()).toMatchObject({ status: "True", lastTransitionTime: "2026-03-01T12:01:00Z" });

    agent.scanned([sighting(), sighting({ pod: "web-1" })]);
    await agent.time.pass(20_000);
    expect(agent.condition()).toMatchObject({
      message: expect.stringContaining("2 ghosts"),
      lastTransitionTime: "2026-03-01T12:01:00Z",
      lastHeartbeatTime: "2026-03-01T12:01:15Z",
    });

    agent.scanned();
    await agent.time.pass(20_000);
    expect(agent.condition()).toMatchObject({
      status: "False",
      reason: "NoGhostSandboxes",
      lastTransitionTime: "2026-03-01T12:01:30Z",
    });
    await face.close();
  });

  test("is written at most a few times a minute, however the node flaps", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 20_000 })), { minLength: 20, maxLength: 60 }),
        async (flaps) => {
          const agent = shownAgent();
          const face = agent.show();
          const written: number[] = [];
          agent.cluster.before = (request) => {
            if (request.startsWith(`PATCH ${NODE}`)) written.push(agent.time.clock());
          };
          for (const [ghosts, milliseconds] of flaps) {
            agent.scanned(Array.from({ length: ghosts }, (_, index) => sighting({ pod: `web-${index}` })));
            await agent.time.pass(milliseconds);
          }
          await agent.time.pass(20_000);

          for (const [index, atMs] of written.entries()) {
            if (index > 0) expect(atMs - (written[index - 1] ?? 0)).toBeGreaterThanOrEqual(15_000);
          }
          const last = flaps.at(-1)?.[0] ?? 0;
          expect(agent.condition()?.["status"]).toBe(last === 0 ? "False" : "True");
          await face.close();
        },
      ),
      { numRuns: 20 },
    );
  });

  test("survives a restart of the agent: not written again, and with its age", async () => {
    const agent = shownAgent();
    const first = agent.show();
    agent.scanned([sighting()]);
    await agent.time.pass(MINUTE);
    await first.close();
    agent.writes();

    const second = agent.show();
    await agent.time.pass(2 * MINUTE);
    expect(agent.writes()).toEqual([]);

    await agent.time.pass(3 * MINUTE);
    agent.scanned([sighting()]);
    expect(agent.writes()).toEqual([`PATCH ${NODE}/status`]);
    expect(agent.condition()).toMatchObject({
      status: "True",
      lastTransitionTime: "2026-03-01T12:00:00Z",
      lastHeartbeatTime: "2026-03-01T12:05:00Z",
    });
    await second.close();
  });

  test("becomes Unknown when the loop hangs, without an event", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();

    await agent.time.pass(12 * MINUTE);

    expect(agent.condition()).toMatchObject({ status: "Unknown", reason: "ScanOverdue" });
    await face.close();
  });
});

describe("a failed write", () => {
  test("is retried when the API is back, after a day with a growing back-off", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(MINUTE);
    agent.writes();
    agent.cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };
    agent.scanned([sighting()]);
    for (let hour = 0; hour < 24; hour++) {
      await agent.time.pass(HOUR);
      agent.scanned([sighting()]);
    }
    const tried = agent.writes();
    expect(tried.length).toBeGreaterThan(24);
    expect(tried.length).toBeLessThan(24 * 13 + 10);
    expect(agent.warnings).toEqual([
      "publishing the node condition failed; retrying: connection refused",
      "writing the GhostReport failed; retrying: connection refused",
    ]);

    agent.cluster.before = () => undefined;
    await agent.time.pass(6 * MINUTE);

    expect(agent.condition()).toMatchObject({ status: "True" });
    expect(agent.warnings).toContain("publishing the node condition: recovered: the API server accepts it again");
    await face.close();
  });

  test("without permission is reported once and retried rarely", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.cluster.before = (request) => {
      if (request.startsWith(`PATCH ${NODE}`)) throw new KubeError("forbidden", "may not patch nodes/status");
    };

    await idle(agent, 180);

    expect(agent.warnings).toHaveLength(1);
    expect(agent.writes().length).toBeLessThanOrEqual(10);
    await face.close();
  });

  test("that hangs blocks nothing: the store continues, and close waits only for its timeout", async () => {
    const agent = shownAgent();
    const face = agent.show();
    let isAsked = false;
    agent.cluster.before = () => {
      isAsked = true;
      return agent.time.timing().sleep(5000, new AbortController().signal);
    };

    agent.scanned();
    agent.scanned([sighting()]);
    await agent.time.pass(0);
    expect(isAsked).toBe(true);
    const closing = face.close();
    await agent.time.pass(20_000);

    await closing;
  });
});
