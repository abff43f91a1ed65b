import { describe, expect, test } from "vitest";
import { requestQueue } from "../../../src/agent/requests/heal-requests.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { GHOST_HEALS, GHOST_HEALS_OF_NODE, type GhostHeal, type HealAnswer } from "../../../src/kube/ghost-heal.ts";
import { memoryCluster } from "../../support/memory-cluster.ts";
import { virtualTime } from "../../support/virtual-time.ts";
import { isAllowed } from "../kube/agent-roles.ts";

const NODE = "n1";
const DIGEST = `sha256:${"a".repeat(64)}`;
const ANSWER: HealAnswer = { outcome: "healed", totals: { planned: 1, healed: 1, left: 0 } };

interface Made {
  readonly node?: string;
  readonly secondsAgo?: number;
  readonly status?: object;
}

/** The request queue of the agent of n1, and what its cluster has. */
function queue(answer: () => Promise<HealAnswer> = () => Promise.resolve(ANSWER)) {
  const cluster = memoryCluster();
  const time = virtualTime();
  const stop = new AbortController();
  const warnings: string[] = [];
  const asked: string[] = [];
  const rig = { isProven: true };
  const opened = requestQueue({
    openCluster: cluster.open,
    nodeName: () => NODE,
    timing: time.timing(),
    warn: (...parts) => warnings.push(parts.join(": ")),
    isProven: () => rig.isProven,
    answer: (spec) => {
      asked.push(spec.planDigest ?? "dry run");
      return answer();
    },
    stop: stop.signal,
  });
  const path = (name: string) => `${GHOST_HEALS}/${name}`;
  return {
    rig,
    cluster,
    time,
    stop,
    warnings,
    asked,
    make: (name: string, { node = NODE, secondsAgo = 0, status }: Made = {}) => {
      const creationTimestamp = new Date(Date.now() - secondsAgo * 1000).toISOString();
      const spec = { node, requestedBy: "jane", planDigest: DIGEST };
      cluster.store.put(path(name), { metadata: { name, creationTimestamp }, spec, ...(status && { status }) });
    },
    /** What the watch of this node shows. */
    take: async () => {
      const objects = cluster.store.entries().flatMap(([one, object]) => (one.startsWith(GHOST_HEALS) ? [object] : []));
      const shown = objects.map((object) => GHOST_HEALS_OF_NODE.reduce(object as never, NODE));
      opened.take(shown.filter((one): one is GhostHeal => one !== undefined));
      await opened.idle();
    },
    tidy: () => opened.tidy(),
    status: (name: string) => cluster.store.get(path(name))?.["status"] as Record<string, unknown> | undefined,
    names: () =>
      cluster.store
        .entries()
        .map(([one]) => one)
        .filter((one) => one.startsWith(GHOST_HEALS)),
  };
}

describe("requests to heal", () => {
  test("are answered once, in the order in which they were made", async () => {
    const one = queue();
    one.make("first");
    one.make("second");

    await one.take();
    await one.take();

    expect(one.asked).toEqual([DIGEST, DIGEST]);
    expect(one.status("first")).toMatchObject(ANSWER);
    expect(one.status("first")?.["startedAt"]).toMatch(/^\d{4}-/);
    expect(one.cluster.requests.filter((request) => !isAllowed(request))).toEqual([]);
  });

  test("to another node are ignored, whatever the server selected", async () => {
    const one = queue();
    one.make("other", { node: "n2" });

    await one.take();

    expect([one.asked, one.status("other")]).toEqual([[], undefined]);
  });

  test("older than five minutes by the API server's clock are refused, whatever the clock of the node shows", async () => {
    const one = queue();
    one.make("old", { secondsAgo: 302 });
    one.make("recent", { secondsAgo: 290 });

    await one.take();

    expect(one.status("old")).toMatchObject({ outcome: "refused", code: "stale" });
    expect(one.status("recent")).toMatchObject({ outcome: "healed" });
    expect(one.asked).toHaveLength(1);
  });

  test("that an earlier process had started are not executed again", async () => {
    const one = queue();
    one.make("cut-short", { status: { startedAt: "2026-03-01T12:00:00Z" } });

    await one.take();

    expect(one.asked).toEqual([]);
    expect(one.status("cut-short")).toMatchObject({ outcome: "unknown", code: "interrupted" });
  });

  test("that were withdrawn, or changed by another client, are not executed", async () => {
    const one = queue();
    one.make("withdrawn");
    one.cluster.before = (request) => {
      if (request.includes("withdrawn/status")) one.cluster.store.remove(`${GHOST_HEALS}/withdrawn`);
    };

    await one.take();

    expect([one.asked, one.warnings]).toEqual([[], []]);
  });

  test("are not answered before the node has been proven to be this machine", async () => {
    const one = queue();
    one.rig.isProven = false;
    one.make("early");
    await one.take();
    expect(one.asked).toEqual([]);

    one.rig.isProven = true;
    await one.take();
    expect(one.asked).toEqual([DIGEST]);
  });

  test("are answered with an error that ended the work, and the next one is answered too", async () => {
    let count = 0;
    const one = queue(() => (count++ === 0 ? Promise.reject(new Error("broken")) : Promise.resolve(ANSWER)));
    one.make("first");
    one.make("second");

    await one.take();

    expect(one.status("first")).toMatchObject({ outcome: "unknown" });
    expect(one.status("second")).toMatchObject({ outcome: "healed" });
    expect(one.warnings).toEqual([expect.stringContaining("broken")]);
  });

  test("get their answer when the API server is back", async () => {
    const one = queue();
    one.make("first");
    let refusals = 0;
    one.cluster.before = () => {
      if (one.asked.length > 0 && refusals++ < 2) throw new KubeError("busy", "later");
    };
    const taken = one.take();
    await one.time.pass(10_000);
    await taken;

    expect(one.status("first")).toMatchObject({ outcome: "healed" });
  });

  test("are started when the API server is back; if the answer to that got lost, they are refused", async () => {
    const one = queue();
    one.make("first");
    let refusals = 0;
    one.cluster.before = () => {
      if (refusals++ < 2) throw new KubeError("busy", "later");
    };
    const taken = one.take();
    await one.time.pass(10_000);
    await taken;
    expect(one.status("first")).toMatchObject({ outcome: "healed" });

    one.make("second");
    let isLost = false;
    one.cluster.before = (request) => {
      if (isLost || !request.includes("second/status")) return;
      isLost = true;
      one.make("second", { status: { startedAt: "2026-03-01T12:00:00Z" } });
      throw new KubeError("timeout", "the answer got lost");
    };
    const again = one.take();
    await one.time.pass(10_000);
    await again;
    expect(one.status("second")).toMatchObject({ outcome: "refused", code: "not-started" });
    expect(one.asked).toHaveLength(1);
  });

  test("get a short answer where the custom resource does not take the whole one", async () => {
    const one = queue(() => Promise.resolve({ ...ANSWER, message: "too long" }));
    one.make("first");
    let isWhole = true;
    one.cluster.before = () => {
      if (one.asked.length === 0 || !isWhole) return;
      isWhole = false;
      throw new KubeError("unreadable", "message: Too long");
    };

    await one.take();

    expect(one.status("first")).toMatchObject({ outcome: "healed", totals: ANSWER.totals });
  });

  test("are not started once the agent ends", async () => {
    const one = queue(() => {
      one.stop.abort();
      return Promise.resolve(ANSWER);
    });
    one.make("first");
    one.make("second");

    await one.take();

    expect(one.status("first")).toMatchObject({ outcome: "healed" });
    expect(one.status("second")).toBeUndefined();
  });

  test("are removed after an hour, and not before", async () => {
    const one = queue();
    one.make("first");
    await one.take();
    await one.time.pass(59 * 60_000);
    await one.tidy();
    expect(one.names()).toHaveLength(1);

    await one.time.pass(60_000);
    await one.tidy();
    expect(one.names()).toEqual([]);
    expect(one.cluster.requests.filter((request) => !isAllowed(request))).toEqual([]);
  });
});
