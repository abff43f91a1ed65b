import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { AGENT_KUBECONFIG, AGENT_LOG, agentOn } from "../../lab/cluster/agent.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { containersOf, isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { liftOrder, orderAtGate } from "../../lab/cni-gate.ts";
import { pluginOf } from "../../lab/faults/hung-plugin.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { until } from "../../lab/poll.ts";
import { type ProgramClock, programClock } from "../../lab/program-clock.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";
import { haunt, runsAgain } from "./haunted-pod.ts";
import { cluster, HANG_GUARD_MS, scanOn } from "./lab-cluster.ts";

const PODS = names("web", 5);
const SLOW = "slow";
const DAY = 86_400;
const SINCE_1970 = Math.floor(Date.now() / 1000) - DAY;

/** Certificates of the API server are valid from a day ago for a year. */
test.each([
  ["forward by 40 days", 40 * DAY, "api"],
  ["back by two hours", -7200, "api"],
  ["back to 1970", -SINCE_1970, "kubelet"],
] as const)(
  "after a clock step %s, agent and heal continue, treat no creation as stuck, delete nothing, and touch no running pod",
  async (_how, seconds, source) => {
    // containerd 1.6 cannot stop a sandbox with a torn cached result. kubelet's timeout is longer than the test.
    const story = await cluster({ runtime: "1.6", kubelet: { runtimeRequestTimeout: "15m" } });
    const { node } = story;
    await story.apply(podObjects(PODS, node.name));
    const before = await story.waitForPods(PODS.length, isReady);
    const clock = await programClock(node.lab);
    const agent = await agentOn(node, { agent: { scanEvery: "5s", defaults: { minAge: "2s" } } }, [], clock.command);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await healedByAgent(node, "web-0");
    const pid = agent.pid;
    await orderAtGate(node.lab, "ADD", SLOW, 'while [ -e "$order" ]; do sleep 0.1; done\n');
    await story.apply(podObjects([SLOW], node.name));
    const plugin = await until("the creation is in flight", HANG_GUARD_MS, () => pluginOf(node.lab, "ADD", SLOW));

    await clock.step(seconds);
    expect((await scanWith(clock, node)).kubernetes.source).toBe(source);
    await healedByAgent(node, "web-1");
    expect(agent.pid).toBe(pid);
    // An agent that starts with such a clock would delete old entries at once.
    await agent.end("TERM");
    const ghost = await haunt(node, "web-2");
    await until("the scan finds it", HANG_GUARD_MS, async () =>
      (await scanWith(clock, node, "--min-age=0s")).findings.some(({ subject }) => subject.sandboxId === ghost)
        ? true
        : undefined,
    );
    const healing = await node.lab.exec([...clock.command, UNGHOST, "heal", "--yes", "--min-age=0s", ...AS_AGENT]);
    expect(healing.code, healing.stdout + healing.stderr).toBe(0);
    await runsAgain(node, "web-2", ghost);
    await agent.start();
    await healedByAgent(node, "web-3");
    expect(quarantined(node)).toBe(4);

    const plugins = processesOf(node.lab).filter(({ environment }) => environment.get("CNI_COMMAND") === "ADD");
    expect(plugins.map((process) => process.pid)).toContain(plugin.pid);
    await liftOrder(node.lab, "ADD", SLOW);
    await clock.step(0);
    const after = await story.waitForPods(PODS.length + 1, isReady);
    expect(containersOf(after, ["web-4"])).toEqual(containersOf(before, ["web-4"]));
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    await until("the scan is healthy and has asked the API", HANG_GUARD_MS, async () => {
      const { verdict, kubernetes } = await scanOn(node);
      return verdict === "healthy" && kubernetes.source === "api" ? true : undefined;
    });
  },
  HANG_GUARD_MS,
);

const AS_AGENT = ["--kubeconfig", AGENT_KUBECONFIG];

async function scanWith(clock: ProgramClock, { lab }: ClusterNode, ...args: readonly string[]): Promise<NodeReport> {
  return reportOf(await lab.exec([...clock.command, UNGHOST, "scan", "-o", "json", ...AS_AGENT, ...args]));
}

async function healedByAgent(node: ClusterNode, pod: string): Promise<void> {
  const ghost = await haunt(node, pod);
  await runsAgain(node, pod, ghost);
  await until(`the agent has healed ${pod}`, HANG_GUARD_MS, () =>
    readFileSync(node.lab.path(AGENT_LOG), "utf8")
      .split("\n")
      .some((line) => line.includes('"ghost healed"') && line.includes(ghost))
      ? true
      : undefined,
  );
}

function quarantined({ lab }: ClusterNode): number {
  return readdirSync(lab.path("/var/lib/unghost/quarantine")).length;
}
