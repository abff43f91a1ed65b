import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { isReady } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import {
  podNamed,
  replacedAmong,
  restartsOf,
  socketServed,
  startDriver,
  startedAmong,
  tearCacheOf,
} from "./csi-driver.ts";
import { cluster, HANG_GUARD_MS, scanOn, WAIT_MS } from "./lab-cluster.ts";

test(
  "after a power cut with a torn CNI cache of a CSI node plugin, the agent restores the driver, its sidecar and the volume",
  async () => {
    const story = await cluster();
    const { node } = story;
    const before = await startDriver(story);

    await node.powerCut();
    tearCacheOf(node, "zz-node-plugin");
    await node.boot();
    const isOld = startedAmong(before);
    const restarts = restartsOf(before.find(({ metadata }) => metadata.name.startsWith("csi-sidecar-")));
    await until("the sidecar crashes after the boot", WAIT_MS, async () =>
      restartsOf(await podNamed(story, "csi-sidecar")) > restarts + 1 ? true : undefined,
    );
    const report = await scanOn(node);
    expect(report.findings.map(({ class: id }) => id)).toContain("libcni-result-cache-corrupt");
    expect(report.findings.flatMap(({ blocks }) => blocks)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^pod default\/csi-sidecar-\w+: crash-loops without the driver's socket$/),
      ]),
    );

    const agent = await agentOn(node);
    await agent.start();
    await socketServed(node);
    const after = await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    expect(replacedAmong(before, after)).toEqual(["csi-sidecar"]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

test(
  "agent at power-on while the API still shows the sidecar as running: everything is restored without help",
  async () => {
    const story = await cluster();
    const { node } = story;
    const before = await startDriver(story);
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    await node.powerCut();
    tearCacheOf(node, "zz-node-plugin");
    await node.boot(() => agent.start());
    await socketServed(node);
    const isOld = startedAmong(before);
    const after = await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    expect(replacedAmong(before, after).filter((name) => name !== "csi-sidecar")).toEqual([]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);
