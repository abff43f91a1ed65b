import { expect, test } from "vitest";
import { seeded } from "../../../lab/chaos/random.ts";
import { openKubeExporter } from "../../../src/agent/kube/kube-exporter.ts";
import { openFleetGate } from "../../../src/agent/limits/gate.ts";
import { openStore } from "../../../src/agent/state/store.ts";
import { memoryCluster } from "../../support/memory-cluster.ts";
import { virtualTime } from "../../support/virtual-time.ts";
import { ENDING } from "../limits/actions.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { sighting } from "../page/agent-states.ts";

const MINUTE = 60_000;
const NODES = 20;
const POLICY = { slots: 3, namespace: "unghost", breakerShare: 0.3, breakerLeast: 3 };

test("when the whole fleet becomes unhealthy at once, a few nodes act once, then none, later a few at a time", async () => {
  const time = virtualTime();
  const cluster = memoryCluster();
  const chance = seeded(7);
  const random = (): number => chance.below(1000) / 1000;
  const forever = new AbortController().signal;
  cluster.before = () => time.timing().sleep(random() * 50, forever);
  const acts: number[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  let isIll = false;
  const breakers: (() => boolean)[] = [];

  /** Scans every few seconds and tries to heal without effect: the cause is elsewhere. */
  async function live(node: string): Promise<void> {
    const timing = time.timing({ random });
    const store = openStore(freshState());
    const common = { openCluster: cluster.open, timing, warn: () => undefined };
    openKubeExporter({ ...common, nodeName: () => node, watched: store });
    const gate = openFleetGate({ ...common, nodeName: () => node, policy: () => POLICY, onBreaker: () => undefined });
    breakers.push(() => gate.breaker().open);
    for (;;) {
      await timing.sleep(random() * 1000, forever);
      const scan = scanOf({ report: { kubernetes: { source: "api" } }, endedAtMs: timing.clock() });
      const sightings = isIll ? [sighting()] : [];
      store.update((state) => ({ ...state, scan, sightings, breaker: gate.breaker() }));
      if (!isIll) continue;
      const answer = await gate.ask([ENDING]);
      if (answer.kind === "go") {
        acts.push(timing.clock());
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        await timing.sleep(3000, forever);
        atOnce -= 1;
        await answer.release();
      } else await timing.sleep(30_000, forever);
    }
  }

  for (let index = 0; index < NODES; index++) {
    cluster.store.put(`/api/v1/nodes/n${index}`, { metadata: { name: `n${index}` }, status: { conditions: [] } });
    void live(`n${index}`);
  }
  await time.pass(5 * MINUTE);
  expect(acts).toEqual([]);

  isIll = true;
  const beganMs = time.clock();
  await time.pass(9 * MINUTE);
  expect(acts.length).toBeGreaterThan(0);
  expect(Math.max(...acts) - beganMs).toBeLessThan(15_000);
  expect(breakers.every((isOpen) => isOpen())).toBe(true);

  const actsBefore = acts.length;
  await time.pass(6 * MINUTE);
  expect(acts.length).toBeGreaterThan(actsBefore);
  expect(breakers.some((isOpen) => isOpen())).toBe(false);
  expect(mostAtOnce).toBe(POLICY.slots);
});
