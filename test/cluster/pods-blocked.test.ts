import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { isReady, names, type PodObject, podObjects } from "../../lab/cluster/objects.ts";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { until } from "../../lab/poll.ts";
import { KUBERNETES } from "../../lab/runtimes.ts";
import { cluster, HANG_GUARD_MS, WAIT_MS } from "./lab-cluster.ts";

const PODS = names("web", 2);

interface EventList {
  readonly items: readonly {
    readonly reason: string;
    readonly message: string;
    readonly involvedObject: { readonly kind: string; readonly name: string };
  }[];
}

test.each(KUBERNETES)(
  "pods that the plugin refuses: the node's condition, its metric and an event name them, and the condition clears (Kubernetes %s)",
  async (kubernetes) => {
    const story = await cluster({ kubernetes });
    const { node, api } = story;
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    for (const pod of PODS) await orderAtGate(node.lab, "ADD", pod, refusal("no addresses left"));
    await story.apply(podObjects(PODS, node.name));
    const { message } = await story.waitForCondition(node, "GhostSandboxes", ({ reason }) => reason === "PodsBlocked");
    for (const pod of PODS) expect(message).toContain(pod);
    const ofSandbox = kubernetes === "1.36.4" ? undefined : expect.stringContaining("sandbox");
    expect((await story.pods()).map(sandboxMessage)).toEqual(PODS.map(() => ofSandbox));
    const events = await until("the event is there", WAIT_MS, async () => {
      const { items } = await api.get<EventList>("/api/v1/events?fieldSelector=reason=PodsBlocked");
      return items.length > 0 ? items : undefined;
    });
    expect(events.map(({ involvedObject: { kind, name } }) => `${kind} ${name}`)).toContain(`Node ${node.name}`);
    const metrics = await node.lab.check(["curl", "-sS", "http://127.0.0.1:20258/metrics"]);
    expect(metrics).toMatch(/^unghost_blocked_pods [12]$/m);

    for (const pod of PODS) await liftOrder(node.lab, "ADD", pod);
    await story.waitForPods(PODS.length, isReady);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

/** Kubelet has given one since 1.37. */
function sandboxMessage({ status }: PodObject): string | undefined {
  const condition = status.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  return condition?.status === "False" ? condition.message : undefined;
}
