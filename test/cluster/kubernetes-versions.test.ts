import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { isReady, names, type PodObject, podObjects, runsAgain } from "../../lab/cluster/objects.ts";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { KUBERNETES } from "../../lab/runtimes.ts";
import { cluster, HANG_GUARD_MS, scanOn } from "./lab-cluster.ts";

const PODS = names("web", 4);
const BLOCKED = "blocked";
const [, ...others] = KUBERNETES;

/** The other stories run on the first version of the table. */
test.each(others)(
  "a power cut under pods of Kubernetes %s: every pod runs again, and kubelet names a missing sandbox",
  async (kubernetes) => {
    const story = await cluster({ kubernetes, runtime: "2.4" });
    const { node } = story;
    await story.apply(podObjects(PODS, node.name));
    await story.waitForPods(PODS.length, isReady);
    const agent = await agentOn(node);
    await agent.start();

    await node.powerCut();
    await node.boot(() => agent.start());
    await story.waitForPods(PODS.length, runsAgain);

    expect(await scanOn(node)).toMatchObject({ verdict: "healthy", findings: [], kubernetes: { source: "api" } });
    await orderAtGate(node.lab, "ADD", BLOCKED, refusal("no addresses left"));
    await story.apply(podObjects([BLOCKED], node.name));
    const pods = await story.waitForPods(
      PODS.length + 1,
      (pod) => pod.metadata.name !== BLOCKED || sandboxMessage(pod) !== undefined,
    );
    expect(pods.map(sandboxMessage).filter((message) => message !== undefined)).toEqual([
      expect.stringContaining("sandbox"),
    ]);
    await liftOrder(node.lab, "ADD", BLOCKED);
    await story.waitForPods(PODS.length + 1, isReady);
  },
  HANG_GUARD_MS,
);

/** Kubelet has given one since 1.37. */
function sandboxMessage({ status }: PodObject): string | undefined {
  const condition = status.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  return condition?.status === "False" ? condition.message || undefined : undefined;
}
