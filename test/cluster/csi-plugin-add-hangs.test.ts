import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { isReady } from "../../lab/cluster/objects.ts";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { HANG_ONCE, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { until } from "../../lab/poll.ts";
import { replacedAmong, socketServed, startDriver, startedAmong } from "./csi-driver.ts";
import { cluster, HANG_GUARD_MS, KUBELET_LOG, scanOn, WAIT_MS } from "./lab-cluster.ts";
import { agentLog } from "./pod-ghost.ts";

test(
  "the ADD of a CSI node plugin hangs after a power cut: pending at first, healed after kubelet's timeout (containerd 2.3)",
  async () => {
    const story = await cluster({ runtime: "2.3", kubelet: { runtimeRequestTimeout: "5s" } });
    const { node } = story;
    const before = await startDriver(story);
    const plugin = before.find(({ metadata }) => metadata.name.startsWith("zz-node-plugin-"))?.metadata.name ?? "";
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    await node.powerCut();
    await orderAtGate(node.lab, "ADD", plugin, HANG_ONCE);
    await node.boot(() => agent.start());
    await until("its ADD hangs", WAIT_MS, () => pluginOf(node.lab, "ADD", plugin));
    const during = await scanOn(node);
    expect((during.pending ?? []).map(({ pod }) => pod?.name)).toContain(plugin);

    await until("kubelet gives the creation up", WAIT_MS, () => givenUp(node.lab.path(KUBELET_LOG), plugin));
    const isHealed = () =>
      agentLog(node)
        .split("\n")
        .some((line) => /"ghost healed"/.test(line) && line.includes(plugin));
    await until(
      () => `the agent heals the creation of ${plugin}; it last logged ${agentLog(node).slice(-1000)}`,
      WAIT_MS,
      () => isHealed() || undefined,
    );
    await socketServed(node);
    const isOld = startedAmong(before);
    const after = await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    expect(replacedAmong(before, after).filter((name) => name !== "csi-sidecar")).toEqual([]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

/** Kubelet's timeout of RunPodSandbox, twice its runtimeRequestTimeout, has passed. */
function givenUp(log: string, pod: string): true | undefined {
  const lines = readFileSync(log, "utf8").split("\n");
  return lines.some((line) => line.includes(pod) && line.includes("DeadlineExceeded")) || undefined;
}
