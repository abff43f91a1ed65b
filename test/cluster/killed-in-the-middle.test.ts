import { expect, test } from "vitest";
import { cgroupWithLimits } from "../../lab/cgroup.ts";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { useThickMultusIn } from "../../lab/cluster/multus.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { restartDelegateDaemon } from "../../lab/delegate-daemon.ts";
import { addsUnderWay, hangDelegateDaemon } from "../../lab/faults/thick-multus.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, scanOn, storyRuntimes, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const RUNNING = names("runs", 6);
const NEW = names("new", 12);
const runtimes: readonly RuntimeVersion[] = ["1.6", "2.1", "2.3"];

test.each(storyRuntimes(runtimes, ["1.6"]))(
  "containerd and kubelet are killed while thick multus sets pods up: heal removes the incomplete sandboxes and all pods run (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime, cgroup: cgroupWithLimits() });
    const running = await killedInTheMiddle(story);
    const { node } = story;

    const { code, stdout } = await unghostOn(node, "heal", "--yes", "--min-age", "0s");
    expect(stdout).not.toMatch(/^(failed|refused)/m);
    expect(code, stdout).toBe(0);
    await node.kubelet.start();
    await allRun(story, running);
  },
  HANG_GUARD_MS,
);

test.each(storyRuntimes(runtimes, ["2.3"]))(
  "containerd and kubelet are killed while thick multus sets pods up: the agent heals without help (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime, cgroup: cgroupWithLimits() });
    const running = await killedInTheMiddle(story);
    const { node } = story;

    // Leaks have a minimum age of five minutes by default; the test does not wait for it.
    const agent = await agentOn(node, { agent: { scanEvery: "5s", defaults: { minAge: "5s" } } });
    await agent.start();
    // A kubelet that runs would remove them, too.
    await until("the agent has removed the incomplete sandboxes", WAIT_MS, async () => {
      const listed = await node.lab.cri.listPodSandbox(undefined, { timeoutMs: WAIT_MS });
      return listed.length === RUNNING.length || undefined;
    });
    await node.kubelet.start();
    await allRun(story, running);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

/** Leaves containerd running, kubelet stopped and the network working. Returns the containers of the running pods. */
async function killedInTheMiddle(story: Cluster): Promise<readonly string[]> {
  const { node } = story;
  await useThickMultusIn(story);
  await story.apply(podObjects(RUNNING, node.name));
  const before = await story.waitForPods(RUNNING.length, isReady);

  await hangDelegateDaemon(node.lab);
  await story.apply(podObjects(NEW, node.name));
  await until("each new pod's ADD hangs", WAIT_MS, () => addsUnderWay(node.lab).size >= NEW.length || undefined);
  await Promise.all([node.lab.killRuntime(), node.kubelet.end("KILL")]);
  await restartDelegateDaemon(node.lab);
  await until("no plugin runs any more", WAIT_MS, () => addsUnderWay(node.lab).size === 0 || undefined);
  await node.lab.startRuntime();
  return containersOf(before, RUNNING);
}

async function allRun(story: Cluster, running: readonly string[]): Promise<void> {
  const after = await story.waitForPods(RUNNING.length + NEW.length, isReady);
  expect(containersOf(after, RUNNING)).toEqual(running);
  await healthyScan(() => scanOn(story.node));
}
