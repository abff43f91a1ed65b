import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { AGENT_LOG, admitAgents, agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { haunt, runsAgain } from "./haunted-pod.ts";
import { cluster, HANG_GUARD_MS, scanOn } from "./lab-cluster.ts";

const PODS = names("web", 4);

/** Reverts what a test did to the API or the disk. */
const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

async function withAgent(): Promise<{ readonly story: Cluster; readonly agent: Service }> {
  // containerd 1.6 cannot stop a sandbox with a torn cached result.
  const story = await cluster({ runtime: "1.6" });
  await story.apply(podObjects(PODS, story.node.name));
  await story.waitForPods(PODS.length, isReady);
  const agent = await agentOn(story.node, { agent: { scanEvery: "5s", defaults: { minAge: "2s" } } });
  await agent.start();
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  return { story, agent };
}

function agentLog({ lab }: ClusterNode): string {
  return readFileSync(lab.path(AGENT_LOG), "utf8");
}

/** Heals during the outage are reported afterwards, and the condition is current again. */
async function reportedAfterwards(story: Cluster, pod: string, how: string): Promise<void> {
  // An event that was refused permanently is not sent again.
  const kept = how !== "answers 403";
  const events = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${pod},reason=GhostHealed`;
  await until(`an event reports ${pod}`, HANG_GUARD_MS, async () => {
    const { items } = await story.api.get<{ readonly items: readonly unknown[] }>(events);
    return items.length > 0 || !kept ? true : undefined;
  });
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  await until("the scan is healthy and has asked the API", HANG_GUARD_MS, async () => {
    const { verdict, kubernetes } = await scanOn(story.node);
    return verdict === "healthy" && kubernetes.source === "api" ? true : undefined;
  });
}

/** Each makes the API unavailable to the agent, and returns how to restore it. */
const OUTAGES: Readonly<Record<string, (story: Cluster) => Promise<() => Promise<void>>>> = {
  "is gone": async ({ controlPlane }) => {
    await controlPlane.apiServer.end("KILL");
    return () => controlPlane.startApiServer();
  },
  hangs: async ({ controlPlane }) => {
    await controlPlane.signalApiServer("STOP");
    return () => controlPlane.signalApiServer("CONT");
  },
  "answers 403": async (story) => {
    await story.kubectl("delete", "clusterrolebinding", "unghost-agent", "unghost-healing");
    return () => admitAgents(story);
  },
};

test.each(Object.keys(OUTAGES))(
  "while the API server %s, the agent heals what kubelet's directories prove, reports the outage, and publishes afterwards",
  async (how) => {
    const { story, agent } = await withAgent();
    const { node } = story;
    const pid = agent.pid;
    const back = await OUTAGES[how]?.(story);
    if (back === undefined) throw new Error(`${how} is no outage`);
    endings.push(back);
    const logged = agentLog(node).length;

    // An open watch continues if only new requests are refused, and a silent one is trusted for a while.
    if (how === "is gone") {
      await until("the agent reads pods from kubelet instead", HANG_GUARD_MS, () =>
        agentLog(node).slice(logged).includes("API server unavailable; reading them from kubelet") ? true : undefined,
      );
    }

    const ghost = await haunt(node, "web-1");
    await runsAgain(node, "web-1", ghost);
    await until("the agent has healed it", HANG_GUARD_MS, () =>
      new RegExp(`"ghost healed".*${ghost}|${ghost}.*"ghost healed"`).test(agentLog(node)) ? true : undefined,
    );
    await until("the agent reports that it cannot ask the API", HANG_GUARD_MS, () =>
      /"level":"(warn|error)".*([Kk]ubernetes|API)/.test(agentLog(node).slice(logged)) ? true : undefined,
    );
    expect(agent.pid).toBe(pid);

    await back();
    endings.length = 0;
    await reportedAfterwards(story, "web-1", how);
    // According to kubelet's directories the pod still existed: its old sandbox was stopped, and not removed with its
    // logs.
    expect(await story.kubectl("logs", "--previous", "web-1")).toBe("web-1 says hello\n");
    expect(agent.pid).toBe(pid);
  },
  HANG_GUARD_MS,
);
