import { readFileSync, truncateSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, expect, test } from "vitest";
import { admitAgents, agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { isReady, names, podObjects } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { healthyScan } from "../support/healthy-scan.ts";
import { startedAmong } from "./csi-driver.ts";
import { HANG_GUARD_MS, scanOn, sharedCluster, WAIT_MS } from "./lab-cluster.ts";
import { agentLog, healedByAgent, isHealedByAgent, makeGhost, resultCache, sandboxOf } from "./pod-ghost.ts";

/** kubelet asks the API server whether somebody may read its pods, except on this port. */
const READ_ONLY_PORT = { readOnlyPort: 10255 };
const IGNORE = "unghost.dev/ignore";
/** How long the API server is gone before the ghost appears: ten minutes with `make cluster-test ALL=1`. */
const LONG_OUTAGE_MS = process.env["UNGHOST_LAB_ALL"] ? 600_000 : 0;
/** A sandbox younger than this counts as wanted, whatever is known of its pod. */
const SETTLED_MS = 30_000;

// containerd 1.6 cannot stop a sandbox with a torn cached result.
const story = sharedCluster({ runtime: "1.6", kubelet: READ_ONLY_PORT });
let agent: Service;

/** How a story ends what it did to the API. */
const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

/** Each makes the API unavailable to the agent, and returns how to restore it. */
const OUTAGES = {
  "is gone": async ({ controlPlane }: Cluster) => {
    await controlPlane.apiServer.end("KILL");
    return () => controlPlane.startApiServer();
  },
  hangs: async ({ controlPlane }: Cluster) => {
    await controlPlane.signalApiServer("STOP");
    return () => controlPlane.signalApiServer("CONT");
  },
  "answers 403": async (cluster: Cluster) => {
    await cluster.kubectl("delete", "clusterrolebinding", "unghost-agent", "unghost-healing");
    return () => admitAgents(cluster);
  },
};

/** A pod whose ghost is to be healed, and one that is marked to be left alone, for each of the stories. */
const GHOSTS = names("web", 3);
const MARKED = names("marked", 3);

interface PodAnnotations {
  readonly items: readonly { readonly metadata: { readonly annotations: Readonly<Record<string, string>> } }[];
}

beforeAll(async () => {
  const { node } = story();
  const pods = [...GHOSTS, ...MARKED];
  await story().apply(podObjects(pods, node.name));
  await story().waitForPods(pods.length, isReady);
  // After its sandbox was made, which therefore does not have the mark.
  for (const pod of MARKED) await story().kubectl("annotate", "pod", pod, `${IGNORE}=true`);
  await until("kubelet has read the marks", WAIT_MS, async () => {
    const { items } = JSON.parse(
      await node.lab.check(["curl", "-sS", "http://127.0.0.1:10255/pods"]),
    ) as PodAnnotations;
    return (
      items.filter(({ metadata }) => metadata.annotations[IGNORE] === "true").length === MARKED.length || undefined
    );
  });
  agent = await agentOn(node, { agent: { scanEvery: "5s", defaults: { minAge: "2s" } } });
  await agent.start();
  await story().waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
}, HANG_GUARD_MS);

test.each([
  ["is gone", "web-0", "marked-0"],
  ["hangs", "web-1", "marked-1"],
  ["answers 403", "web-2", "marked-2"],
] as const)(
  "while the API server %s, the agent heals by kubelet's pod list, skips an opted-out pod, and publishes afterwards",
  async (how, pod, marked) => {
    const { node } = story();
    const pid = agent.pid;
    const logged = agentLog(node).length;
    const back = await outage(how);
    if (how === "is gone") await sleep(LONG_OUTAGE_MS);

    const left = await makeGhost(node, marked);
    const ghost = await makeGhost(node, pod);
    await healedByAgent(node, pod, ghost);
    await until("the agent reports that it cannot ask the API", WAIT_MS, () =>
      /"level":"(warn|error)".*([Kk]ubernetes|API)/.test(agentLog(node).slice(logged)) ? true : undefined,
    );
    const { kept, kubernetes } = await scanOn(node);
    expect(kubernetes.source).toBe("kubelet");
    expect(kept).toContainEqual(expect.objectContaining({ sandboxId: left, code: "opted-out" }));

    await back();
    // An event that was refused permanently is not sent again.
    if (how !== "answers 403") await eventReports(pod);
    expect([isHealedByAgent(node, left), readFileSync(node.lab.path(resultCache(left)), "utf8")]).toEqual([false, ""]);
    await story().kubectl("annotate", "pod", marked, `${IGNORE}-`);
    await healedByAgent(node, marked, left);
    await eventReports(marked);
    await healthyAgain();
    // By what kubelet knew the pod was still wanted: its old sandbox was stopped, and not removed with its logs.
    expect(await story().kubectl("logs", "--previous", pod)).toBe(`${pod} says hello\n`);
    expect(agent.pid).toBe(pid);
  },
  HANG_GUARD_MS,
);

test(
  "after a power cut while the API server is gone, the agent heals by kubelet's directories, and no logs are lost",
  async () => {
    const { node } = story();
    const before = await story().pods();
    const back = await outage("is gone");
    const ghost = (await sandboxOf(node, "web-0")) ?? "";
    await until("its sandbox is too old to be that of a pod that kubelet has yet to learn of", WAIT_MS, async () => {
      const [sandbox] = await node.lab.cri.listPodSandbox({ id: ghost }, { timeoutMs: WAIT_MS });
      return Date.now() - Number((sandbox?.createdAt ?? 0n) / 1_000_000n) > SETTLED_MS || undefined;
    });

    await node.powerCut();
    truncateSync(node.lab.path(resultCache(ghost)));
    await node.boot(() => agent.start());
    await until(
      () => `the agent has healed ${ghost}; it last logged ${agentLog(node).slice(-1000)}`,
      WAIT_MS,
      () => isHealedByAgent(node, ghost) || undefined,
    );

    await back();
    const isOld = startedAmong(before);
    await story().waitForPods(before.length, (pod) => isReady(pod) && !isOld(pod));
    const logs = await Promise.all(GHOSTS.map((pod) => story().kubectl("logs", "--previous", pod)));
    expect(logs).toEqual(GHOSTS.map((pod) => `${pod} says hello\n`));
    await eventReports("web-0");
    await healthyAgain();
  },
  HANG_GUARD_MS,
);

/** Gives what ends it. */
async function outage(how: keyof typeof OUTAGES): Promise<() => Promise<void>> {
  const { node } = story();
  const logged = agentLog(node).length;
  const back = await OUTAGES[how](story());
  endings.push(back);
  // An open watch continues if only new requests are refused, and a silent one is trusted for a while.
  if (how === "is gone") {
    await until("the agent reads pods from kubelet instead", WAIT_MS, () =>
      agentLog(node).slice(logged).includes("API server unavailable; reading them from kubelet") ? true : undefined,
    );
  }
  return async () => {
    endings.length = 0;
    await back();
  };
}

async function eventReports(pod: string): Promise<void> {
  const events = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${pod},reason=GhostHealed`;
  await until(`an event reports that ${pod} was healed`, WAIT_MS, async () => {
    const { items } = await story().api.get<{ readonly items: readonly unknown[] }>(events);
    return items.length > 0 ? true : undefined;
  });
}

async function healthyAgain(): Promise<void> {
  const { node } = story();
  await story().waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  const fromApi = await healthyScan(
    () => scanOn(node),
    ({ kubernetes }) => kubernetes.source === "api",
  );
  expect(fromApi.findings).toEqual([]);
}
