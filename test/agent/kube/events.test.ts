import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { eventObject, publishedChange } from "../../../src/agent/kube/event-content.ts";
import type { AgentEvent } from "../../../src/agent/state/state.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { healRecord, type SightingParts, sighting } from "../page/agent-states.ts";
import { type ShownAgent, shownAgent } from "./shown-agent.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function detected(parts: SightingParts = {}): AgentEvent {
  return { kind: "detected", sighting: sighting(parts) };
}

/** An agent that has just scanned, with a written condition. */
async function scannedAgent(): Promise<ShownAgent & { close(): Promise<void> }> {
  const agent = shownAgent();
  const face = agent.show();
  agent.scanned();
  await agent.time.pass(1000);
  agent.writes();
  return { ...agent, close: () => face.close() };
}

function published({ events }: ShownAgent): readonly string[] {
  return events()
    .map((event) => {
      const { kind, name } = event["involvedObject"] as { readonly kind: string; readonly name: string };
      return `${String(event["reason"])} ${kind} ${name} ×${String(event["count"])}`;
    })
    .toSorted();
}

function eventWrites(agent: ShownAgent): readonly string[] {
  return agent.writes().filter((request) => request.includes("/events"));
}

describe("events", () => {
  test("are created for the pod and for the node, as kubectl describe selects them", async () => {
    const agent = await scannedAgent();
    agent.store.publish(detected());
    await agent.time.pass(3000);

    expect(agent.events()).toEqual([
      expect.objectContaining({
        metadata: expect.objectContaining({ namespace: "default", name: expect.stringMatching(/^n1\.[0-9a-f]{16}$/) }),
        involvedObject: { apiVersion: "v1", kind: "Node", name: "n1", uid: "n1" },
        message: expect.stringMatching(
          /^libcni-result-cache-corrupt of shop\/web-0: The sandbox .* Blocked: pod shop\/web-0/,
        ),
        source: { component: "unghost", host: "n1" },
        reportingInstance: "n1",
      }),
      expect.objectContaining({
        metadata: expect.objectContaining({ namespace: "shop", name: expect.stringMatching(/^web-0\.[0-9a-f]{16}$/) }),
        involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web-0", uid: "7d1f" },
        type: "Warning",
        reason: "GhostDetected",
        count: 1,
        firstTimestamp: "2026-03-01T12:00:01Z",
        lastTimestamp: "2026-03-01T12:00:01Z",
      }),
    ]);
    await agent.close();
  });

  test("of a heal start with what was done, then the fault", () => {
    const record = healRecord({ done: "stopped the sandbox, restarted shop/attacher", summary: "its cache is torn" });

    expect(publishedChange({ kind: "healed", record })?.message).toMatch(
      /^Stopped the sandbox, restarted shop\/attacher\. Before: its cache is torn/,
    );
  });

  test.each<readonly [string, AgentEvent, readonly string[]]>([
    ["a healing", { kind: "healed", record: healRecord() }, ["GhostHealed Node n1 ×1", "GhostHealed Pod web-0 ×1"]],
    [
      "a healing that failed",
      { kind: "heal-failed", record: healRecord({ outcome: "failed", reason: "the DEL timed out" }) },
      ["GhostHealFailed Node n1 ×1", "GhostHealFailed Pod web-0 ×1"],
    ],
    [
      "giving up",
      {
        kind: "given-up",
        sighting: sighting({
          standing: { kind: "given-up", message: "three attempts failed", next: "Restart the daemon." },
        }),
      },
      ["GhostHealFailed Node n1 ×1", "GhostHealFailed Pod web-0 ×1"],
    ],
    [
      "a pause",
      { kind: "refused", reason: "paused", message: "the node is paused", sighting: sighting() },
      ["GhostHealRefused Node n1 ×1", "GhostHealRefused Pod web-0 ×1"],
    ],
    [
      "a wait for the minimum age",
      { kind: "refused", reason: "min-age", message: "too young", sighting: sighting() },
      [],
    ],
    ["a ghost that disappeared", { kind: "gone", sighting: sighting() }, []],
    ["a pod that is gone", detected({ class: "pod-gone" }), ["GhostDetected Node n1 ×1"]],
  ])("are created for %s", async (_what, event, expected) => {
    const agent = await scannedAgent();
    agent.store.publish(event);
    await agent.time.pass(3000);

    expect(published(agent)).toEqual(expected);
    await agent.close();
  });

  test("that repeat increase the count of the existing event, with growing intervals", async () => {
    const agent = await scannedAgent();
    for (let minute = 0; minute < 180; minute++) {
      agent.scanned();
      agent.store.publish(detected());
      await agent.time.pass(MINUTE);
    }

    expect(published(agent)).toEqual([
      expect.stringMatching(/Node n1 ×1\d\d$/),
      expect.stringMatching(/Pod web-0 ×1\d\d$/),
    ]);
    // Created once, then counted at 5, 15, 35, 75 and 135 minutes; for the pod and for the node.
    expect(eventWrites(agent)).toHaveLength(2 * 6);
    await agent.close();
  });

  test("of an earlier agent are counted on", async () => {
    const agent = await scannedAgent();
    agent.store.publish(detected());
    await agent.time.pass(3000);
    await agent.close();

    const next = agent.show();
    agent.store.publish(detected());
    await agent.time.pass(3000);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×2", "GhostDetected Pod web-0 ×2"]);
    await next.close();
  });

  test("of an earlier agent are counted on with a kubelet's credentials, which may not read events", async () => {
    const agent = await scannedAgent();
    agent.cluster.before = (request) => {
      if (/^GET .*\/events/.test(request)) throw new KubeError("forbidden", 'cannot get resource "events"');
    };
    agent.store.publish(detected());
    await agent.time.pass(3000);
    await agent.close();

    const next = agent.show();
    agent.store.publish(detected());
    await agent.time.pass(3000);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×2", "GhostDetected Pod web-0 ×2"]);
    expect(agent.warnings).toEqual([]);
    await next.close();
  });

  test("that the API has dropped are created again", async () => {
    const agent = await scannedAgent();
    agent.store.publish(detected());
    await agent.time.pass(3000);
    for (const [path] of agent.cluster.store.entries()) if (path.includes("/events/")) agent.cluster.store.remove(path);

    agent.store.publish(detected());
    await agent.time.pass(6 * MINUTE);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×1", "GhostDetected Pod web-0 ×1"]);
    await agent.close();
  });

  test("of a terminating namespace are dropped, and the node's event is still created", async () => {
    const agent = await scannedAgent();
    agent.cluster.before = (request) => {
      if (request.includes("/namespaces/shop/")) throw new KubeError("forbidden", "shop is being terminated");
    };
    agent.store.publish(detected());
    await agent.time.pass(3000);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×1"]);
    expect(agent.warnings).toEqual([]);
    await agent.close();
  });

  test("that an API server forbids before it has loaded its roles are written later", async () => {
    const agent = await scannedAgent();
    agent.cluster.before = (request) => {
      if (request.includes("/events")) throw new KubeError("forbidden", "no role is known yet");
    };
    agent.store.publish(detected());
    await agent.time.pass(10_000);
    agent.cluster.before = () => undefined;
    await agent.time.pass(MINUTE);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×1", "GhostDetected Pod web-0 ×1"]);
    await agent.close();
  });

  test("that are forbidden permanently are retried a few times, with one request per namespace", async () => {
    const agent = await scannedAgent();
    let requests = 0;
    agent.cluster.before = (request) => {
      if (!request.includes("/namespaces/shop/")) return;
      requests += 1;
      throw new KubeError("forbidden", "events is forbidden");
    };
    for (const name of ["web-0", "web-1", "web-2"]) agent.store.publish(detected({ pod: name }));
    await agent.time.pass(HOUR);

    expect(requests).toBe(4);
    expect(agent.warnings).toEqual([]);
    await agent.close();
  });

  test("that cannot be written now are written later", async () => {
    const agent = await scannedAgent();
    agent.cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };
    agent.store.publish(detected());
    await agent.time.pass(HOUR);
    agent.cluster.before = () => undefined;
    agent.scanned();
    await agent.time.pass(7 * MINUTE);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×1", "GhostDetected Pod web-0 ×1"]);
    expect(agent.events().map((event) => event["lastTimestamp"])).toEqual([
      "2026-03-01T12:00:01Z",
      "2026-03-01T12:00:01Z",
    ]);
    expect(agent.warnings.filter((line) => line.startsWith("writing events"))).toEqual([
      "writing events failed; retrying: connection refused",
      "writing events: recovered: the API server accepts it again",
    ]);
    await agent.close();
  });
});

describe("events after a power cut", () => {
  test("are published for heals before the API server was up, as soon as it answers a scan", async () => {
    const agent = shownAgent();
    const face = agent.show();
    agent.scanned([], { kubernetes: { source: "kubelet", error: "connection refused" } });
    agent.store.publish({ kind: "healed", record: healRecord() });
    await agent.time.pass(10 * MINUTE);
    const before = agent.cluster.requests.length;

    agent.scanned();
    await agent.time.pass(3000);

    expect(before).toBe(0);
    expect(published(agent)).toEqual(["GhostHealed Node n1 ×1", "GhostHealed Pod web-0 ×1"]);
    await face.close();
  });

  test("are one for all findings, and one for their heals", async () => {
    const agent = await scannedAgent();
    for (let index = 0; index < 31; index++)
      agent.store.publish(detected({ pod: `web-${index}`, class: index < 20 ? "dead-after-crash" : "shim-leak" }));
    await agent.time.pass(3000);
    for (let index = 0; index < 31; index++)
      agent.store.publish({ kind: "healed", record: healRecord({ class: "dead-after-crash" }) });
    await agent.time.pass(3000);

    expect(published(agent)).toEqual(["GhostDetected Node n1 ×31", "GhostHealed Node n1 ×31"]);
    const [message] = agent
      .events()
      .filter((event) => event["reason"] === "GhostDetected")
      .map((event) => event["message"]);
    expect(message).toBe(
      "20 ghosts, 11 leaks detected: 20 dead-after-crash, 11 shim-leak; such as shop/web-0, shop/web-1, shop/web-10",
    );
    expect(eventWrites(agent)).toHaveLength(2);
    await agent.close();
  });

  test("are limited after a long API outage", async () => {
    const agent = await scannedAgent();
    agent.cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };
    for (let pod = 0; pod < 200; pod++) {
      agent.store.publish(detected({ pod: `pod-${pod}` }));
      await agent.time.pass(5000);
    }
    agent.writes();
    agent.cluster.before = () => undefined;
    agent.scanned();
    await agent.time.pass(10 * MINUTE);

    expect(eventWrites(agent).length).toBeLessThanOrEqual(60 + 10);
    await agent.close();
  });

  test("of a node without a quiet period stay within the hourly budget", async () => {
    const floods = fc.array(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 60_000 })), {
      minLength: 100,
      maxLength: 200,
    });
    await fc.assert(
      fc.asyncProperty(floods, async (bursts) => {
        const agent = await scannedAgent();
        const writtenAt: number[] = [];
        agent.cluster.before = (request) => {
          if (/^(POST|PATCH).*\/events/.test(request)) writtenAt.push(agent.time.clock());
        };
        let pod = 0;
        for (const [size, milliseconds] of bursts) {
          for (let index = 0; index < size; index++) agent.store.publish(detected({ pod: `pod-${pod++}` }));
          await agent.time.pass(milliseconds);
        }

        for (const atMs of writtenAt) {
          const inHour = writtenAt.filter((other) => other >= atMs && other < atMs + HOUR).length;
          // The budget saved in a quiet hour, and that of this hour.
          expect(inHour).toBeLessThanOrEqual(120);
        }
        await agent.close();
      }),
      { numRuns: 10 },
    );
  });
});

test("every event has a name and a message length that the API accepts", () => {
  const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
  const times = { firstAt: new Date(0), lastAt: new Date(0), count: 1 };
  const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join(".").slice(0, 253));
  fc.assert(
    fc.property(name, name, fc.string({ unit: "binary", maxLength: 3000 }), (node, pod, message) => {
      const draft = { reason: "GhostDetected", class: "pod-gone", message, count: 1 } as const;
      const onPod = { ...draft, pod: { namespace: "default", name: pod, uid: "1" } };
      for (const event of [eventObject(draft, node, times), eventObject(onPod, node, times)]) {
        const { metadata, message: text } = event as { metadata: { name: string }; message: string };
        expect(metadata.name).toMatch(SUBDOMAIN);
        expect(metadata.name.length).toBeLessThanOrEqual(253);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1024);
      }
    }),
  );
});
