import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { seeded } from "../../../lab/chaos/random.ts";
import { openSlots, type Slots } from "../../../src/agent/limits/slots.ts";
import type { Timing } from "../../../src/agent/limits/timing.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { type MemoryCluster, memoryCluster } from "../../support/memory-cluster.ts";
import { type VirtualTime, virtualTime } from "../../support/virtual-time.ts";

const LEASES = "/apis/coordination.k8s.io/v1/namespaces/unghost/leases";

interface Fleet {
  readonly time: VirtualTime;
  readonly cluster: MemoryCluster;
  readonly warnings: string[];
  readonly slotsOf: (node: string, timing?: Timing) => Slots;
  readonly take: (slots: Slots, howMany?: number) => ReturnType<Slots["take"]>;
}

function fleetOf(): Fleet {
  const time = virtualTime();
  const cluster = memoryCluster();
  const warnings: string[] = [];
  return {
    time,
    cluster,
    warnings,
    slotsOf: (node, timing = time.timing()) =>
      openSlots({
        openCluster: cluster.open,
        nodeName: () => node,
        timing,
        warn: (...parts) => warnings.push(parts.join(": ")),
      }),
    take: async (slots, howMany = 1) => {
      const api = await cluster.open(0);
      if (api === undefined) throw new Error("the memory cluster is always there");
      return await slots.take(api, { slots: howMany, namespace: "unghost" });
    },
  };
}

/** Returns the slot, or fails the test. */
async function got(taking: ReturnType<Slots["take"]>) {
  const answer = await taking;
  if (answer.kind !== "held") throw new Error(`taken by ${answer.by.join(", ")}`);
  return answer.slot;
}

describe("a slot", () => {
  test("is a Lease with its holder, and times in the format of the API", async () => {
    const { take, slotsOf, cluster } = fleetOf();

    const { name } = await got(take(slotsOf("n1")));

    expect(name).toBe("unghost-heal-0");
    expect(cluster.store.get(`${LEASES}/unghost-heal-0`)?.["spec"]).toEqual({
      holderIdentity: "n1",
      leaseDurationSeconds: 60,
      acquireTime: "2026-03-01T12:00:00.000000Z",
      renewTime: "2026-03-01T12:00:00.000000Z",
      leaseTransitions: 1,
    });
  });

  test("is refused to others while it is held, however long", async () => {
    const { take, slotsOf, time } = fleetOf();
    const other = slotsOf("n2");
    await got(take(slotsOf("n1")));

    for (let minute = 0; minute < 10; minute++) {
      expect(await take(other)).toEqual({ kind: "taken", by: ["n1"] });
      await time.pass(60_000);
    }
  });

  test("goes to the next node at once when it is released", async () => {
    const { take, slotsOf } = fleetOf();
    const slot = await got(take(slotsOf("n1")));

    await slot.release();

    expect(await take(slotsOf("n2"))).toMatchObject({ kind: "held" });
  });

  test("of a dead holder is free when it was not renewed for its duration, whatever the wall clocks show", async () => {
    const { take, slotsOf, time, cluster } = fleetOf();
    const deaf = { ...time.timing(), sleep: () => new Promise<void>(() => undefined) };
    await got(take(slotsOf("dead", deaf)));
    const other = slotsOf("n2", time.timing({ wallClockOffMs: 86_400_000 }));

    expect(await take(other)).toEqual({ kind: "taken", by: ["dead"] });
    await time.pass(59_000);
    expect(await take(other)).toEqual({ kind: "taken", by: ["dead"] });
    await time.pass(2000);
    expect(await take(other)).toMatchObject({ kind: "held" });
    expect(cluster.store.get(`${LEASES}/unghost-heal-0`)?.["spec"]).toMatchObject({
      holderIdentity: "n2",
      leaseTransitions: 2,
    });
  });

  test("of a node whose agent was killed is taken over by its next agent without waiting", async () => {
    const { take, slotsOf, time } = fleetOf();
    const deaf = { ...time.timing(), sleep: () => new Promise<void>(() => undefined) };
    await got(take(slotsOf("n1", deaf)));

    expect(await take(slotsOf("n1"))).toMatchObject({ kind: "held" });
  });

  test("is still held after a write whose answer got lost", async () => {
    const { take, slotsOf, cluster, time, warnings } = fleetOf();
    const slot = await got(take(slotsOf("n1")));
    const mine = cluster.store.get(`${LEASES}/unghost-heal-0`);
    if (mine === undefined) throw new Error("there is no such Lease");
    cluster.store.put(`${LEASES}/unghost-heal-0`, mine);

    await time.pass(21_000);
    expect(warnings).toEqual([]);
    await slot.release();

    expect(await take(slotsOf("n2"))).toMatchObject({ kind: "held" });
  });

  test("that another node took over is not released", async () => {
    const { take, slotsOf, cluster, time, warnings } = fleetOf();
    const slot = await got(take(slotsOf("n1")));
    const mine = cluster.store.get(`${LEASES}/unghost-heal-0`);
    if (mine === undefined) throw new Error("there is no such Lease");
    cluster.store.put(`${LEASES}/unghost-heal-0`, {
      ...mine,
      spec: { holderIdentity: "n9", leaseDurationSeconds: 60 },
    });

    await time.pass(21_000);
    await slot.release();

    expect(warnings).toEqual([expect.stringContaining("taken by another node")]);
    expect(cluster.store.get(`${LEASES}/unghost-heal-0`)?.["spec"]).toMatchObject({ holderIdentity: "n9" });
  });

  test("that cannot be released expires, and that is logged", async () => {
    const { take, slotsOf, cluster, warnings } = fleetOf();
    const slot = await got(take(slotsOf("n1")));
    cluster.before = () => {
      throw new KubeError("unreachable", "no route to host");
    };

    await slot.release();

    expect(warnings).toEqual([expect.stringContaining("no route to host")]);
  });
});

const SLOTS = 3;
const NODES = 20;

/**
 * Twenty nodes that are always unhealthy, heal for a while and sometimes die meanwhile; a fifth of all writes is a
 * conflict.
 */
async function simulate(
  random: () => number,
): Promise<{ readonly mostAtOnce: number; readonly healed: ReadonlySet<string> }> {
  const { time, cluster, take } = fleetOf();
  const healing = new Set<string>();
  const healed = new Set<string>();
  let mostAtOnce = 0;
  cluster.before = async (request) => {
    await time.timing().sleep(random() * 300, new AbortController().signal);
    if (!request.startsWith("GET") && random() < 0.2) throw new KubeError("conflict", "modified");
  };

  async function life(node: string): Promise<void> {
    let dead = false;
    const never = new Promise<never>(() => undefined);
    const real = time.timing({ wallClockOffMs: (random() - 0.5) * 7_200_000, random });
    // A dead process never wakes up, and its requests never return.
    const timing: Timing = {
      ...real,
      sleep: async (milliseconds, signal) => {
        await real.sleep(milliseconds, signal);
        if (dead) await never;
      },
    };
    const slots = openSlots({ openCluster: cluster.open, nodeName: () => node, timing, warn: () => undefined });
    for (;;) {
      await timing.sleep(random() * 20_000, new AbortController().signal);
      const answer = await take(slots, SLOTS);
      if (answer.kind === "taken") continue;
      healing.add(node);
      mostAtOnce = Math.max(mostAtOnce, healing.size);
      await timing.sleep(random() * 100_000, new AbortController().signal);
      healing.delete(node);
      if (random() < 0.3) {
        dead = true;
        await real.sleep(random() * 200_000, new AbortController().signal);
        void life(node);
        return;
      }
      healed.add(node);
      await answer.slot.release();
    }
  }

  for (let index = 0; index < NODES; index++) void life(`n${index}`);
  await time.pass(2 * 3_600_000);
  return { mostAtOnce, healed };
}

test("twenty nodes never heal concurrently with more than the slots, whichever node dies and whatever their clocks", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), async (seed) => {
      const { mostAtOnce, healed } = await simulate(chanceFrom(seed));

      expect(mostAtOnce).toBe(SLOTS);
      expect(healed.size).toBe(NODES);
    }),
    { numRuns: 3 },
  );
});

function chanceFrom(seed: number): () => number {
  const chance = seeded(seed);
  return () => chance.below(2 ** 30) / 2 ** 30;
}
