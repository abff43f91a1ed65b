import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { KubeError } from "../../../src/kube/errors.ts";
import { sighting } from "../page/agent-states.ts";
import { NODE, REPORT, type ShownAgent, shownAgent } from "./shown-agent.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** When the report was written, by the clock. */
function writeTimes({ cluster, time }: ShownAgent): readonly number[] {
  const written: number[] = [];
  cluster.before = (request) => {
    if (request.startsWith(`PATCH ${REPORT}/status`)) written.push(time.clock());
  };
  return written;
}

describe("publishing the GhostReport", () => {
  test("creates one object that the node owns, after the first scan", async () => {
    const agent = shownAgent();
    const face = agent.show();
    await agent.time.pass(MINUTE);
    expect(agent.report()).toBeUndefined();

    agent.scanned();
    await agent.time.pass(0);

    expect(agent.cluster.store.get(REPORT)).toMatchObject({
      kind: "GhostReport",
      metadata: { name: "n1", ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "u-1" }] },
      status: {
        verdict: "healthy",
        truncated: false,
        conditions: [{ type: "GhostSandboxes", status: "False", lastTransitionTime: "2026-03-01T12:01:00Z" }],
      },
    });
    await face.close();
  });

  test("writes nothing for a node that may be another machine", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned([], { kubernetes: { source: "kubelet", error: 'the cluster\'s node "n1" is another machine' } });
    await agent.time.pass(HOUR);

    expect(agent.report()).toBeUndefined();
    await face.close();
  });

  test("writes a new ghost at once, also seconds after another write, and its end", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(5 * SECOND);

    agent.scanned([sighting()]);
    await agent.time.pass(0);
    expect(agent.report()?.status).toMatchObject({ verdict: "ghosts", totals: { findings: 1 } });

    await agent.time.pass(MINUTE);
    agent.scanned();
    await agent.time.pass(0);
    expect(agent.report()?.status).toMatchObject({ verdict: "healthy", totals: { findings: 0 } });
    await face.close();
  });

  test("collects other changes for 30 s", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned([sighting(), sighting({ pod: "web-1" })]);
    await agent.time.pass(5 * MINUTE);
    const written = writeTimes(agent);
    const standing = { kind: "healing" } as const;
    agent.scanned([sighting({ standing }), sighting({ pod: "web-1" })]);
    await agent.time.pass(0);
    const first = agent.time.clock();
    agent.scanned([sighting({ standing }), sighting({ standing, pod: "web-1" })]);
    await agent.time.pass(10 * SECOND);
    agent.scanned([sighting({ standing })]);
    await agent.time.pass(MINUTE);

    expect(written).toEqual([first, first + 30 * SECOND]);
    expect(agent.report()?.status?.totals.findings).toBe(1);
    await face.close();
  });

  test("writes an unchanged report once an hour, at another minute on each node, and whatever pods come and go", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(0);
    const written = writeTimes(agent);
    for (let minute = 0; minute < 10 * 60; minute++) {
      agent.scanned([], {
        sandboxes: { total: minute, ready: minute, notReady: 0 },
        podCreation: {
          able: "yes",
          lastSuccess: { at: new Date(minute * MINUTE).toISOString(), pod: POD },
          blockedPods: [],
        },
      });
      await agent.time.pass(MINUTE);
    }

    expect(written.length).toBeGreaterThanOrEqual(10);
    expect(written.length).toBeLessThanOrEqual(13);
    await face.close();
  });

  test("writes three times a minute at most, however the node flaps", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(4), fc.integer({ min: 1, max: 8000 })), { minLength: 40, maxLength: 80 }),
        async (flaps) => {
          const agent = shownAgent();
          const face = agent.show();
          agent.scanned();
          await agent.time.pass(2 * MINUTE);
          const written = writeTimes(agent);
          for (const [ghosts, milliseconds] of flaps) {
            agent.scanned(Array.from({ length: ghosts }, (_, index) => sighting({ pod: `web-${index}` })));
            await agent.time.pass(milliseconds);
          }
          await agent.time.pass(2 * MINUTE);

          for (const start of written) {
            const inMinute = written.filter((at) => at >= start && at < start + MINUTE).length;
            expect(inMinute).toBeLessThanOrEqual(3);
          }
          expect(written.length).toBeLessThanOrEqual(2 + Math.ceil((agent.time.clock() - (written[0] ?? 0)) / 30_000));
          expect(agent.report()?.status?.totals.findings).toBe(flaps.at(-1)?.[0]);
          await face.close();
        },
      ),
      { numRuns: 20 },
    );
  });

  test("a node that comes back from a power cut, and is healed, writes twice in its first minute", async () => {
    const agent = shownAgent();
    const before = agent.show();
    agent.scanned();
    await agent.time.pass(MINUTE);
    await before.close();
    const written = writeTimes(agent);
    const bootedAt = agent.time.clock();
    const ghosts = Array.from({ length: 12 }, (_, index) => sighting({ pod: `web-${index}` }));
    const healing = ghosts.map((one) => ({ ...one, standing: { kind: "healing" } as const }));

    const face = agent.show();
    for (const found of [ghosts.slice(0, 8), ghosts, healing, healing.slice(5), healing.slice(10), []]) {
      agent.scanned(found);
      await agent.time.pass(2 * SECOND);
    }
    await agent.time.pass(2 * MINUTE);

    expect(written.filter((at) => at < bootedAt + MINUTE)).toHaveLength(2);
    expect(agent.report()?.status?.verdict).toBe("healthy");
    await face.close();
  });

  test("a restart writes nothing, and keeps the times of the condition", async () => {
    const agent = shownAgent();
    const first = agent.show();
    agent.scanned([sighting()]);
    await agent.time.pass(MINUTE);
    await first.close();
    const before = agent.report();
    const written = writeTimes(agent);

    const second = agent.show();
    agent.scanned([sighting()]);
    await agent.time.pass(10 * MINUTE);

    expect(written).toEqual([]);
    expect(agent.report()).toEqual(before);
    await second.close();
  });

  test("creates the report again after it was deleted", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned();
    await agent.time.pass(MINUTE);
    agent.cluster.store.remove(REPORT);
    agent.scanned([sighting()]);
    await agent.time.pass(0);

    expect(agent.report()?.status?.verdict).toBe("ghosts");
    await face.close();
  });

  test("a cluster without the custom resource is logged once and asked rarely; condition and events continue", async () => {
    const agent = shownAgent();
    const face = agent.show();
    const asked: string[] = [];
    agent.cluster.before = (request) => {
      if (!request.includes("ghostreports")) return;
      asked.push(request);
      throw new KubeError("not-found", "the server could not find the requested resource");
    };
    for (let minute = 0; minute < 120; minute++) {
      agent.scanned(minute % 2 === 0 ? [] : [sighting()]);
      await agent.time.pass(MINUTE);
    }

    expect(agent.warnings).toEqual([
      "GhostReport is not installed in the cluster; nothing is written: the server could not find the requested resource",
    ]);
    expect(asked.length).toBeLessThan(40);
    expect(agent.writes().filter((request) => request === `PATCH ${NODE}/status`).length).toBeGreaterThan(100);
    await face.close();
  });
});

const POD = { namespace: "shop", name: "web-0" };
