import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { runMultusDaemonAsPod, useThickMultusIn } from "../../lab/cluster/multus.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { addsUnderWay } from "../../lab/faults/thick-multus.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { reportOf } from "../e2e/unghost.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { cluster, HANG_GUARD_MS, scanOn, storyRuntimes, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const CLASS = "multus-daemon-down-or-wedged";
const RUNNING = names("runs", 3);
const NEW = names("new", 4);
const runtimes: readonly RuntimeVersion[] = ["1.6", "2.1", "2.3"];

test.each(storyRuntimes(runtimes, ["2.1"]))(
  "an explicit heal restarts the container of a hung multus daemon, and the agent never does (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime });
    const before = await wedgedUnderNewPods(story);
    const { node } = story;

    const unasked = reportOf(await unghostOn(node, "heal", "--yes", "-o", "json"));
    expect(unasked.actions?.map(({ outcome }) => outcome)).toEqual(["skipped"]);

    const healing = await unghostOn(node, "heal", "--yes", "--allow", CLASS, "-o", "json");
    const { actions, remaining } = reportOf(healing);
    expect(actions).toMatchObject([{ action: "restart-daemon", outcome: "healed", journalId: expect.any(String) }]);
    expect([healing.code, remaining]).toEqual([0, []]);
    await allRun(story, before);
  },
  HANG_GUARD_MS,
);

test.each(storyRuntimes(runtimes, ["2.3"]))(
  "the agent restarts the container of a hung multus daemon when its policy allows it (containerd %s)",
  async (runtime) => {
    const story = await cluster({ runtime });
    const before = await wedgedUnderNewPods(story);
    const agent = await agentOn(story.node, { agent: { classes: { [CLASS]: { mode: "heal", minAge: "0s" } } } });
    await agent.start();
    await allRun(story, before);
    await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

/** Returns the containers of the running pods. */
async function wedgedUnderNewPods(story: Cluster): Promise<readonly string[]> {
  const { node } = story;
  await useThickMultusIn(story);
  await runMultusDaemonAsPod(story);
  await story.apply(podObjects(RUNNING, node.name));
  const before = await story.waitForPods(RUNNING.length, isReady);
  const daemon = processesOf(node.lab).find(({ command }) => command[0]?.endsWith("/multus-daemon"));
  if (daemon === undefined) throw new Error("the multus daemon does not run");
  await node.lab.kill(daemon.pid, "STOP");
  await story.apply(podObjects(NEW, node.name));
  await until("each new pod waits for the daemon", WAIT_MS, () =>
    addsUnderWay(node.lab).size >= NEW.length ? true : undefined,
  );
  const report = await until("the scan finds the daemon", WAIT_MS, async () => {
    const now = await scanOn(node);
    return now.findings.some((finding) => finding.class === CLASS) ? now : undefined;
  });
  const blocked = report.findings.flatMap(({ blockedPods = [] }) => blockedPods.map(({ name }) => name));
  expect(blocked).toEqual(expect.arrayContaining([...NEW]));
  return containersOf(before, RUNNING);
}

async function allRun(story: Cluster, before: readonly string[]): Promise<void> {
  const after = await story.waitForPods(RUNNING.length + NEW.length, isReady);
  expect(containersOf(after, RUNNING)).toEqual(before);
  await healthyScan(() => scanOn(story.node));
}
