import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { useThinMultusIn } from "../../lab/cluster/multus.ts";
import { isReady, names, podObjects, runsAgain } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { reportOf } from "../e2e/unghost.ts";
import { cluster, HANG_GUARD_MS, scanOn, stopFails, storyRuntimes, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const PODS = names("web", 24);
const runtimes: readonly RuntimeVersion[] = ["1.6", "2.1", "2.3"];

test.each(storyRuntimes(runtimes, ["1.6"]))(
  "power cut under thin multus 4.3.0, which strips the delegate's settings: heal leaves no ghost and all 24 pods run again (containerd %s)",
  async (runtime) => {
    const story = await withThinMultus(runtime);
    const { node } = story;
    await node.powerCut();
    await node.boot();
    await stopFails(node, PODS);

    const healed = await unghostOn(node, "heal", "--yes", "-o", "json");
    const { actions = [], findings, verdict } = reportOf(healed);
    expect(findings).toEqual([]);
    expect(actions.filter(({ outcome }) => outcome !== "healed")).toEqual([]);
    // Degraded if multus timed out in the ADD of a new pod.
    expect([healed.code, verdict]).toEqual(verdict === "degraded" ? [1, "degraded"] : [0, "healthy"]);
    await healUntilAllRun(story);
    expect((await unghostOn(node, "heal", "--yes")).code).toBe(0);
    expect(await scanOn(node)).toMatchObject({ verdict: "healthy", findings: [] });
  },
  HANG_GUARD_MS,
);

test.each(storyRuntimes(runtimes, ["2.3"]))(
  "power cut under thin multus 4.3.0, which strips the delegate's settings: the agent heals without help (containerd %s)",
  async (runtime) => {
    const story = await withThinMultus(runtime);
    const { node } = story;
    const agent = await agentOn(node);
    await node.powerCut();
    await node.boot(() => agent.start());

    await story.waitForPods(PODS.length, runsAgain);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    expect(await scanOn(node)).toMatchObject({ verdict: "healthy", findings: [] });
  },
  HANG_GUARD_MS,
);

/**
 * In an ADD this multus waits 2.5 seconds for the API server, which is too short for many pods at once on a busy machine,
 * and its DEL fails after an ADD that failed: the pod is a ghost before the story begins.
 */
const AT_ONCE = 6;

async function withThinMultus(runtime: RuntimeVersion): Promise<Cluster> {
  const story = await cluster({ runtime });
  await useThinMultusIn(story, "4.3.0");
  for (let count = AT_ONCE; count <= PODS.length; count += AT_ONCE) {
    await story.apply(podObjects(PODS.slice(count - AT_ONCE, count), story.node.name));
    await story.waitForPods(count, isReady);
  }
  return story;
}

/** Kubelet creates all pods at once after the heal, and those whose ADD failed are healed like the others. */
async function healUntilAllRun(story: Cluster): Promise<void> {
  await until(
    "all pods run again",
    WAIT_MS,
    async () => {
      if ((await story.pods()).every(runsAgain)) return true;
      if ((await scanOn(story.node)).findings.length > 0) await unghostOn(story.node, "heal", "--yes");
      return undefined;
    },
    1000,
  );
}
