import { afterEach, describe, expect, test } from "vitest";
import { openFleetGate } from "../../../src/agent/limits/gate.ts";
import type { BreakerState } from "../../../src/agent/state/state.ts";
import type { OpenCluster } from "../../../src/kube/cluster-credentials.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { type MemoryCluster, memoryCluster } from "../../support/memory-cluster.ts";
import { type VirtualTime, virtualTime } from "../../support/virtual-time.ts";
import { ENDING, QUARANTINE } from "./actions.ts";
import { putNode } from "./nodes.ts";

const POLICY = { slots: 1, namespace: "unghost", breakerShare: 0.3, breakerLeast: 3 };

interface Scene {
  readonly cluster: MemoryCluster;
  readonly time: VirtualTime;
  readonly warnings: string[];
  readonly turns: BreakerState[];
  readonly gate: (node: string, open?: OpenCluster) => ReturnType<typeof openFleetGate>;
  /** This many nodes, of which the first few become unhealthy now. */
  readonly fleet: (size: number, unhealthy: number) => void;
}

const gates: ReturnType<typeof openFleetGate>[] = [];
afterEach(async () => {
  await Promise.all(gates.splice(0).map((gate) => gate.close()));
});

function scene(): Scene {
  const cluster = memoryCluster();
  const time = virtualTime();
  const warnings: string[] = [];
  const turns: BreakerState[] = [];
  return {
    cluster,
    time,
    warnings,
    turns,
    gate: (node, open = cluster.open) => {
      const warn = (...parts: string[]): void => void warnings.push(parts.join(": "));
      const gate = openFleetGate({
        openCluster: open,
        policy: () => POLICY,
        nodeName: () => node,
        timing: time.timing(),
        warn,
        onBreaker: (state) => turns.push(state),
      });
      gates.push(gate);
      return gate;
    },
    fleet: (size, unhealthy) => {
      for (let index = 0; index < size; index++)
        putNode(cluster, time, `n${index}`, { status: index < unhealthy ? "True" : "False" });
    },
  };
}

describe("a node that requests to act", () => {
  test("is allowed when no other node acts, and holds a slot until it has finished", async () => {
    const { gate, fleet } = scene();
    fleet(10, 1);
    const [one, other] = [gate("n0"), gate("n1")];

    const mine = await one.ask([ENDING]);
    expect(mine.kind).toBe("go");
    expect(await other.ask([ENDING])).toMatchObject({ kind: "wait", reason: "slots" });
    if (mine.kind === "go") await mine.release();

    expect(await other.ask([ENDING])).toMatchObject({ kind: "go" });
  });

  test("gets the list of actions that need no slot", async () => {
    const { gate } = scene();
    await gate("n0").ask([ENDING]);

    const answer = await gate("n1").ask([QUARANTINE, ENDING]);

    expect(answer).toMatchObject({
      kind: "wait",
      reason: "slots",
      message: expect.stringContaining("n0"),
      meanwhile: [QUARANTINE],
    });
  });

  test("takes no slot for actions that disrupt no pod", async () => {
    const { gate, cluster } = scene();

    expect(await gate("n0").ask([QUARANTINE])).toMatchObject({ kind: "go" });
    expect(cluster.requests.filter((request) => request.includes("unghost-heal"))).toEqual([]);
  });

  test("sends no request without actions", async () => {
    const { gate, cluster } = scene();

    expect(await gate("n0").ask([])).toMatchObject({ kind: "go" });
    expect(cluster.requests).toEqual([]);
  });
});

describe("when much of the fleet becomes unhealthy at once", () => {
  test("no node acts, not even without disruption, and the answer has the reason", async () => {
    const { gate, fleet, warnings, turns } = scene();
    fleet(10, 6);
    const one = gate("n0");

    expect(await one.ask([QUARANTINE])).toMatchObject({
      kind: "wait",
      reason: "breaker",
      message: expect.stringContaining("6 of 10 nodes became unhealthy"),
      meanwhile: [],
    });
    expect(one.breaker()).toMatchObject({ open: true });
    expect(turns).toMatchObject([{ open: true, message: expect.stringContaining("6 of 10") }]);
    expect(warnings).toEqual([]);
  });

  test("the breaker closes on its own when they are healthy again, even without a request of this node", async () => {
    const { gate, fleet, turns, time } = scene();
    fleet(10, 6);
    const one = gate("n0");
    await one.ask([QUARANTINE]);
    fleet(10, 1);

    await time.pass(60_000);

    expect(one.breaker()).toEqual({ open: false });
    expect(turns.map(({ open }) => open)).toEqual([true, false]);
    expect(await one.ask([QUARANTINE])).toMatchObject({ kind: "go" });
  });

  test("the breaker closes when no more become unhealthy, and the others are healed a few at a time", async () => {
    const { gate, fleet, time } = scene();
    fleet(10, 6);
    const [one, other] = [gate("n0"), gate("n1")];
    const asking = Promise.all([one.ask([ENDING]), other.ask([ENDING])]);
    await time.pass(2000);
    await asking;
    expect([one.breaker().open, other.breaker().open]).toEqual([true, true]);

    await time.pass(12 * 60_000);

    expect(await one.ask([ENDING])).toMatchObject({ kind: "go" });
    expect(await other.ask([ENDING])).toMatchObject({ kind: "wait", reason: "slots" });
  });

  test("a hundred nodes with an open breaker send few requests while it is open", async () => {
    const { gate, fleet, time, cluster } = scene();
    fleet(100, 60);
    const all = Array.from({ length: 100 }, (_, index) => gate(`n${index}`));
    const asking = Promise.all(all.map((one) => one.ask([ENDING])));
    await time.pass(2000);
    await asking;
    cluster.requests.length = 0;

    await time.pass(60_000);

    expect(all.every((one) => one.breaker().open)).toBe(true);
    const lists = cluster.requests.filter((request) => request.startsWith("GET /api/v1/nodes?"));
    expect(lists.length).toBeLessThanOrEqual((2 * 60_000) / 5000);
    expect(cluster.requests.length).toBeLessThan(100 * 6);
  });

  test("an API outage keeps the breaker open for a while, and not forever", async () => {
    const { gate, fleet, time, cluster } = scene();
    fleet(10, 6);
    const one = gate("n0");
    await one.ask([ENDING]);
    cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };

    await time.pass(60_000);
    expect(await one.ask([ENDING])).toMatchObject({ kind: "wait", reason: "breaker" });
    await time.pass(11 * 60_000);
    expect(await one.ask([ENDING])).toMatchObject({ kind: "go" });
  });
});

describe("a node heals with an API server", () => {
  const troubles: Readonly<Record<string, KubeError>> = {
    down: new KubeError("unreachable", "connection refused"),
    forbidding: new KubeError("forbidden", "may not get leases"),
    "not taking the token": new KubeError("unauthorized", "Unauthorized"),
    overloaded: new KubeError("busy", "too many requests"),
    "without the namespace": new KubeError("not-found", "namespaces unghost not found"),
    "talking nonsense": new KubeError("unreadable", "not JSON"),
  };

  test.each(Object.entries(troubles))("that is %s, which is logged once", async (_name, error) => {
    const { gate, cluster, warnings, time } = scene();
    cluster.before = (request) => {
      if (!request.startsWith("GET") || error.kind !== "not-found") throw error;
    };
    const one = gate("n0");

    for (let minute = 0; minute < 10; minute++) {
      expect(await one.ask([ENDING])).toMatchObject({ kind: "go" });
      await time.pass(60_000);
    }

    expect(warnings).toEqual([`fleet limits unavailable; healing continues without them: ${error.message}`]);
  });

  test("that allows the counts and no slot, which is logged once", async () => {
    const { gate, cluster, warnings, time } = scene();
    cluster.before = (request) => {
      if (request.includes("unghost-heal-")) throw new KubeError("forbidden", "may not update leases");
    };
    const one = gate("n0");

    for (let minute = 0; minute < 10; minute++) {
      expect(await one.ask([ENDING])).toMatchObject({ kind: "go" });
      await time.pass(60_000);
    }

    expect(warnings).toEqual(["fleet limits unavailable; healing continues without them: may not update leases"]);
  });

  test("that hangs, after two seconds once, then without a delay for a while", async () => {
    const { gate, cluster, time } = scene();
    cluster.before = () => new Promise(() => undefined);
    const one = gate("n0");
    const startedMs = time.clock();
    const first = one.ask([ENDING]).then(({ kind }) => ({ kind, ms: time.clock() - startedMs }));

    await time.pass(10_000);
    expect(await first).toEqual({ kind: "go", ms: 2000 });

    expect(await one.ask([ENDING])).toMatchObject({ kind: "go" });
    expect(time.clock() - startedMs).toBe(10_000);
  });

  test("without credentials", async () => {
    const { gate, warnings } = scene();

    expect(await gate("n0", () => Promise.resolve(undefined)).ask([ENDING])).toMatchObject({ kind: "go" });
    expect(warnings).toEqual([expect.stringContaining("no credentials")]);
  });

  test("but waits when another node always wins the slot", async () => {
    const { gate, cluster, time } = scene();
    cluster.before = (request) => {
      if (/^(POST|PUT) /.test(request)) throw new KubeError("conflict", "modified");
    };

    const asking = gate("n0").ask([ENDING]);
    await time.pass(2000);

    expect(await asking).toMatchObject({ kind: "wait", reason: "slots" });
  });

  test("that came back, after asking it again", async () => {
    const { gate, cluster, time } = scene();
    const [one, other] = [gate("n0"), gate("n1")];
    cluster.before = () => {
      throw new KubeError("unreachable", "connection refused");
    };
    await one.ask([ENDING]);
    cluster.before = () => undefined;
    await other.ask([ENDING]);

    await time.pass(31_000);

    expect(await one.ask([ENDING])).toMatchObject({ kind: "wait", reason: "slots" });
  });
});
