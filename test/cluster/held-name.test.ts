import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { HANG_ONCE, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, namedIn, scanOn, WAIT_MS } from "./lab-cluster.ts";

const RUNNING = names("runs", 4);
const HELD = "held";
const runtimes: readonly RuntimeVersion[] = ["1.6", "2.3"];

test.each(runtimes)(
  "an unlisted hung creation holds the pod's name: scan names the pod, the agent frees the name (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime, kubelet: { runtimeRequestTimeout: "5s" } });
    const { node } = story;
    await story.apply(podObjects(RUNNING, node.name));
    const before = await story.waitForPods(RUNNING.length, isReady);
    await orderAtGate(node.lab, "ADD", HELD, HANG_ONCE);
    await story.apply(podObjects([HELD], node.name));

    await until("kubelet's events say that the name is reserved", WAIT_MS, async () => {
      const events = await story.api.text(
        `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${HELD}`,
      );
      return events.includes("is reserved for") ? true : undefined;
    });
    const listed = await node.lab.cri.listPodSandbox(undefined, { timeoutMs: WAIT_MS });
    expect(listed.map(({ metadata }) => metadata?.name)).not.toContain(HELD);
    const holder = pluginOf(node.lab, "ADD", HELD)?.sandboxId;
    expect(holder).toBeDefined();

    const report = await scanOn(node);
    expect(report.verdict).not.toBe("healthy");
    expect(namedIn(report, [HELD])).toEqual([HELD]);
    expect(report.findings.concat().map(({ subject }) => subject.sandboxId ?? holder)).toEqual(
      report.findings.map(() => holder),
    );

    const agent = await agentOn(node);
    await agent.start();
    const after = await story.waitForPods(RUNNING.length + 1, isReady);
    expect(containersOf(after, RUNNING)).toEqual(containersOf(before, RUNNING));
    expect(pluginOf(node.lab, "ADD", HELD)).toBeUndefined();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await healthyScan(() => scanOn(node));
  },
  HANG_GUARD_MS,
);
