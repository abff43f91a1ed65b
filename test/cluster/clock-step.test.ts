import { readdirSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { AGENT_KUBECONFIG, agentOn } from "../../lab/cluster/agent.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { liftOrder, orderAtGate } from "../../lab/cni-gate.ts";
import { pluginOf } from "../../lab/faults/hung-plugin.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import { type ProgramClock, programClock } from "../../lab/program-clock.ts";
import type { Service } from "../../lab/service.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { HANG_GUARD_MS, scanOn, sharedCluster, WAIT_MS } from "./lab-cluster.ts";
import { healsNewGhost, makeGhost, runsAgain } from "./pod-ghost.ts";

const SLOW = "slow";
const DAY = 86_400;
const SINCE_1970 = Math.floor(Date.now() / 1000) - DAY;

// containerd 1.6 cannot stop a sandbox with a torn cached result. kubelet's timeout is longer than the test.
const shared = sharedCluster({ runtime: "1.6", kubelet: { runtimeRequestTimeout: "15m" } });

/** Nothing of a story is left for the next one, which has other pods. */
afterEach(async () => {
  const { node } = shared();
  await agent?.end("TERM");
  await liftOrder(node.lab, "ADD", SLOW);
  await node.lab.check(["rm", "-rf", "/var/lib/unghost"]);
  await shared().kubectl("delete", "pod", "--all", "--now");
});

let agent: Service | undefined;

/** Certificates of the API server are valid from a day ago for a year. */
test.each([
  ["forward by 40 days", "forward", 40 * DAY, "api"],
  ["back by two hours", "back", -7200, "api"],
  ["back to 1970", "epoch", -SINCE_1970, "kubelet"],
] as const)(
  "after a clock step %s, agent and heal continue, treat no creation as stuck, delete nothing, and touch no running pod",
  async (_how, prefix, seconds, source) => {
    const story = shared();
    const pods = names(prefix, 5);
    const [first = "", second = "", third = "", fourth = "", untouched = ""] = pods;
    const { node } = story;
    await story.apply(podObjects(pods, node.name));
    const before = await story.waitForPods(pods.length, isReady);
    const clock = await programClock(node.lab);
    agent = await agentOn(node, { agent: { scanEvery: "5s", defaults: { minAge: "2s" } } }, [], clock.command);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await healsNewGhost(node, first);
    const pid = agent.pid;
    await orderAtGate(node.lab, "ADD", SLOW, 'while [ -e "$order" ]; do sleep 0.1; done\n');
    await story.apply(podObjects([SLOW], node.name));
    const plugin = await until("the creation is in flight", WAIT_MS, () => pluginOf(node.lab, "ADD", SLOW));

    await clock.step(seconds);
    expect((await scanWith(clock, node)).kubernetes.source).toBe(source);
    await healsNewGhost(node, second);
    expect(agent.pid).toBe(pid);
    // An agent that starts with such a clock would delete old entries at once.
    await agent.end("TERM");
    const ghost = await makeGhost(node, third);
    await until("the scan finds it", WAIT_MS, async () =>
      (await scanWith(clock, node, "--min-age=0s")).findings.some(({ subject }) => subject.sandboxId === ghost)
        ? true
        : undefined,
    );
    const healing = await node.lab.exec([...clock.command, UNGHOST, "heal", "--yes", "--min-age=0s", ...AS_AGENT]);
    expect(healing.code, healing.stdout + healing.stderr).toBe(0);
    await runsAgain(node, third, ghost);
    await agent.start();
    await healsNewGhost(node, fourth);
    expect(quarantined(node)).toBe(4);

    const plugins = processesOf(node.lab).filter(({ environment }) => environment.get("CNI_COMMAND") === "ADD");
    expect(plugins.map((process) => process.pid)).toContain(plugin.pid);
    await liftOrder(node.lab, "ADD", SLOW);
    await clock.step(0);
    const after = await story.waitForPods(pods.length + 1, isReady);
    expect(containersOf(after, [untouched])).toEqual(containersOf(before, [untouched]));
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await healthyScan(
      () => scanOn(node),
      ({ kubernetes }) => kubernetes.source === "api",
    );
  },
  HANG_GUARD_MS,
);

const AS_AGENT = ["--kubeconfig", AGENT_KUBECONFIG];

async function scanWith(clock: ProgramClock, { lab }: ClusterNode, ...args: readonly string[]): Promise<NodeReport> {
  return reportOf(await lab.exec([...clock.command, UNGHOST, "scan", "-o", "json", ...AS_AGENT, ...args]));
}

function quarantined({ lab }: ClusterNode): number {
  return readdirSync(lab.path("/var/lib/unghost/quarantine")).length;
}
