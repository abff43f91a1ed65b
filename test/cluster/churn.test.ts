import { expect, test } from "vitest";
import { isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { EVERY_POD, orderAtGate } from "../../lab/cni-gate.ts";
import { cluster, HANG_GUARD_MS, scanOn, storyRuntimes } from "./lab-cluster.ts";

const STAYING = names("stays", 3);
const ROUNDS = 6;
const PER_ROUND = 5;
const runtimes = storyRuntimes(["1.6", "2.1", "2.3"], ["1.6", "2.3"]);

test.each(runtimes)(
  "every scan is healthy while kubelet creates and deletes pods continuously (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime });
    const { node } = story;
    await story.apply(podObjects(STAYING, node.name));
    await story.waitForPods(STAYING.length, isReady);

    // Long enough for every scan to find plugins at work.
    for (const call of ["ADD", "DEL"] as const) await orderAtGate(node.lab, call, EVERY_POD, "sleep 0.7\n");

    const done = new AbortController();
    const churn = (async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const guests = names(`guest-${round}`, PER_ROUND);
        await story.apply(podObjects(guests, node.name));
        await story.waitForPods(STAYING.length + PER_ROUND, isReady);
        await story.kubectl("delete", "pod", ...guests);
      }
    })().finally(() => done.abort());

    const answers = new Set<string>();
    while (!done.signal.aborted) {
      const { verdict, findings, pending = [], problems } = await scanOn(node);
      answers.add(verdict === "healthy" ? verdict : JSON.stringify({ verdict, findings, pending, problems }));
    }
    await churn;
    expect([...answers]).toEqual(["healthy"]);
  },
  HANG_GUARD_MS,
);
