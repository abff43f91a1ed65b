import { globSync, truncateSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../lab/cluster/cluster.ts";
import { isReady, names, type PodObject, podObjects } from "../../lab/cluster/objects.ts";
import { EVERY_POD, liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { until } from "../../lab/poll.ts";
import { installChart, NAMESPACE } from "./agent-pod.ts";
import { HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const PODS = names("web", 3);

let started: Cluster | undefined;
afterEach(async () => {
  await started?.destroy();
  started = undefined;
});

test("the agent's pod starts when no other pod can, and restores the others after each power cut", {
  timeout: HANG_GUARD_MS,
}, async () => {
  const story = await startCluster({ runtime: "1.6" });
  started = story;
  const { node } = story;
  await installChart(story);
  await story.apply(podObjects(PODS, node.name));
  await story.waitForPods(PODS.length, isReady);

  // No pod gets a network any more.
  await orderAtGate(node.lab, "ADD", EVERY_POD, refusal("no addresses left"));
  await story.apply(podObjects(["blocked"], node.name));
  await until("kubelet could not create a sandbox", WAIT_MS, async () => {
    const reasons = await story.kubectl("get", "events", "-o=jsonpath={.items[*].reason}");
    return reasons.includes("FailedCreatePodSandBox") || undefined;
  });
  const first = await readyAgent(story, () => true);
  await story.kubectl("delete", "pod", `--namespace=${NAMESPACE}`, first.metadata.name);
  const agent = await readyAgent(story, ({ metadata }) => metadata.uid !== first.metadata.uid);
  expect((await story.pods()).filter(isReady).map(({ metadata }) => metadata.name)).toEqual(PODS);
  await liftOrder(node.lab, "ADD", EVERY_POD);
  await story.waitForPods(PODS.length + 1, isReady);

  // containerd 1.6 cannot stop a sandbox with a torn CNI result: its pod does not start again on its own.
  for (const cuts of [1, 2]) {
    await node.powerCut();
    for (const file of globSync(node.lab.path("/var/lib/cni/results/cbr0-*"))) truncateSync(file);
    await node.boot();
    const again = await readyAgent(story, (pod) => restartsOf(pod) >= cuts);
    expect([again.metadata.uid, restartsOf(again)]).toEqual([agent.metadata.uid, cuts]);
    await story.waitForPods(PODS.length + 1, (pod) => isReady(pod) && restartsOf(pod) >= cuts);
  }

  const healed = await until("the agent has published its heals", WAIT_MS, async () => {
    const objects = await story.kubectl("get", "events", "-A", `-o=jsonpath=${HEALED_OBJECTS}`);
    return objects.includes("default/web-") ? objects : undefined;
  });
  // The agent's own sandbox has no CNI network: no torn file can make it a ghost.
  expect(healed).not.toContain(agent.metadata.name);
});

const HEALED_OBJECTS =
  "{range .items[?(@.reason=='GhostHealed')]}{.involvedObject.namespace}/{.involvedObject.name} {end}";

function restartsOf({ status }: PodObject): number {
  return status.containerStatuses?.[0]?.restartCount ?? 0;
}

async function readyAgent(story: Cluster, isIt: (pod: PodObject) => boolean): Promise<PodObject> {
  return await until("the agent is ready", WAIT_MS, async () => {
    const pods = await story.pods(NAMESPACE).catch(() => []);
    return pods.find((pod) => pod.metadata.deletionTimestamp === undefined && isReady(pod) && isIt(pod));
  });
}
