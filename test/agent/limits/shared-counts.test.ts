import { describe, expect, test } from "vitest";
import { fleetCounts } from "../../../src/agent/limits/breaker.ts";
import { type MemoryCluster, memoryCluster } from "../../support/memory-cluster.ts";
import { type VirtualTime, virtualTime } from "../../support/virtual-time.ts";
import { putNode } from "./nodes.ts";

async function countsFor(node: string, cluster: MemoryCluster, time: VirtualTime, wallClockOffMs = 0) {
  const api = await cluster.open(0);
  if (api === undefined) throw new Error("the memory cluster is always there");
  const timing = time.timing({ wallClockOffMs });
  return await fleetCounts(api, { namespace: "unghost", node, timing, signal: new AbortController().signal });
}

function listsIn({ requests }: MemoryCluster): readonly string[] {
  return requests.filter((request) => request.startsWith("GET /api/v1/nodes?"));
}

describe("fleet counts", () => {
  test("are read from the nodes' conditions; nodes without one do not count", async () => {
    const cluster = memoryCluster();
    const time = virtualTime();
    putNode(cluster, time, "n1", { status: "True" });
    putNode(cluster, time, "n2", { status: "False" });
    putNode(cluster, time, "n3", { status: "Unknown" });
    putNode(cluster, time, "n4");

    expect(await countsFor("n1", cluster, time)).toEqual({ reporting: 3, turnedUnhealthy: 1 });
  });

  test("are computed by one of a thousand nodes, page by page", async () => {
    const cluster = memoryCluster();
    const time = virtualTime();
    for (let index = 0; index < 1000; index++) putNode(cluster, time, `n${index}`, { status: "True" });
    cluster.before = () => time.timing().sleep(10, new AbortController().signal);

    const asking = Array.from({ length: 1000 }, (_, index) => countsFor(`n${index}`, cluster, time));
    await time.pass(2000);
    const counts = await Promise.all(asking);

    expect(new Set(counts.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ reporting: 1000, turnedUnhealthy: 1000 })]),
    );
    expect(listsIn(cluster)).toHaveLength(10);
    expect(listsIn(cluster)[0]).toContain("limit=100");
  });

  test("are computed again when they are old", async () => {
    const cluster = memoryCluster();
    const time = virtualTime();
    putNode(cluster, time, "n1", { status: "False" });
    await countsFor("n1", cluster, time);
    putNode(cluster, time, "n1", { status: "True" });

    expect(await countsFor("n2", cluster, time)).toMatchObject({ turnedUnhealthy: 0 });
    await time.pass(5001);
    expect(await countsFor("n2", cluster, time)).toMatchObject({ turnedUnhealthy: 1 });
  });

  test("are computed by the next node when the one that started has died", async () => {
    const cluster = memoryCluster();
    const time = virtualTime();
    putNode(cluster, time, "n1", { status: "True" });
    cluster.before = (request) => (request.startsWith("GET /api/v1/nodes?") ? new Promise(() => undefined) : undefined);
    void countsFor("dead", cluster, time);
    await time.pass(100);
    cluster.before = () => undefined;

    const tooEarly = countsFor("n1", cluster, time);
    await time.pass(1000);
    expect(await tooEarly).toBeUndefined();
    await time.pass(10_000);
    expect(await countsFor("n1", cluster, time)).toMatchObject({ turnedUnhealthy: 1 });
  });

  test("are computed again when they were overwritten with something else", async () => {
    const cluster = memoryCluster();
    const time = virtualTime();
    putNode(cluster, time, "n1", { status: "True" });
    cluster.store.put("/apis/coordination.k8s.io/v1/namespaces/unghost/leases/unghost-fleet-counts", {
      metadata: {
        name: "unghost-fleet-counts",
        namespace: "unghost",
        annotations: { "unghost.dev/fleet-counts": "{" },
      },
    });

    expect(await countsFor("n1", cluster, time)).toMatchObject({ reporting: 1 });
  });
});
