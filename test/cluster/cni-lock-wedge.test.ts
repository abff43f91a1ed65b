import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { pluginOf } from "../../lab/faults/hung-plugin.ts";
import { until } from "../../lab/poll.ts";
import { reportOf } from "../e2e/unghost.ts";
import { cluster, HANG_GUARD_MS, scanOn, storyRuntimes, unghostOn, WAIT_MS } from "./lab-cluster.ts";
import { reportedByAgent } from "./reported-by-agent.ts";

const RUNNING = names("runs", 4);
const DELETED = names("deleted", 6);
const HUNG = names("hung", 12);
const LATER = names("later", 12);
/** Debian's containerd 1.6 does not hold the lock while a plugin runs. */
const runtimes = storyRuntimes(["2.1", "2.3"], ["2.3"]);

test.each(runtimes)(
  "hung ADDs and a rewritten CNI configuration block containerd's CNI lock: scan reports it, heal makes the node Ready again (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime });
    const { node } = story;
    await story.apply(podObjects([...RUNNING, ...DELETED], node.name));
    const before = await story.waitForPods(RUNNING.length + DELETED.length, isReady);

    const agent = await agentOn(node, { agent: { classes: { "cni-lock-wedge": { mode: "observe" } } } });
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    // Only these calls hang: the next ones work.
    for (const pod of HUNG) await orderAtGate(node.lab, "ADD", pod, 'rm -f "$order"\nexec sleep 1000000000\n');
    await story.apply(podObjects(HUNG, node.name));
    for (const pod of HUNG) {
      await until(`the ADD of ${pod} hangs`, WAIT_MS, () => pluginOf(node.lab, "ADD", pod));
    }
    await node.lab.writeFile(CNI_CONF_FILE, readFileSync(node.lab.path(CNI_CONF_FILE)));
    await story.apply(podObjects(LATER, node.name));
    await story.kubectl("delete", "pod", "--wait=false", ...DELETED);
    await story.waitForCondition(node, "Ready", ({ status }) => status !== "True");

    expect((await scanOn(node)).verdict).not.toBe("healthy");
    await reportedByAgent(story, "cni-lock-wedge");
    // A plugin counts as hung after a minute.
    const wedged = await until("the scan finds the lock wedge", WAIT_MS, async () => {
      const report = await scanOn(node);
      return report.findings.some((finding) => finding.class === "cni-lock-wedge") ? report : undefined;
    });
    expect(wedged.verdict).toBe("ghosts");
    const wedge = wedged.findings.find((finding) => finding.class === "cni-lock-wedge");
    expect(wedge?.blockedPods?.map(({ name }) => name)).toEqual([...HUNG, ...LATER].toSorted());
    expect(wedge?.terminatingPods?.map(({ name }) => name)).toEqual(DELETED);

    const { actions } = reportOf(await unghostOn(node, "heal", "--yes", "-o", "json"));
    expect(actions?.filter(({ action }) => action === "free-cni-lock")).toMatchObject([
      { outcome: "healed", code: "node-ready", reason: expect.stringContaining("is Ready") },
    ]);
    expect(await story.condition(node, "Ready")).toMatchObject({ status: "True" });
    const after = await story.waitForPods(RUNNING.length + HUNG.length + LATER.length, isReady);

    // Running pods keep their containers.
    expect(containersOf(after, RUNNING)).toEqual(containersOf(before, RUNNING));
    expect((await scanOn(node)).verdict).toBe("healthy");
  },
  HANG_GUARD_MS,
);
