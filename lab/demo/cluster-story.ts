import { globSync, truncateSync } from "node:fs";
import { admitAgents, agentOn } from "../cluster/agent.ts";
import { type Cluster, startCluster } from "../cluster/cluster.ts";
import { isReady, names, podObjects, runsAgain } from "../cluster/objects.ts";
import { until } from "../poll.ts";
import type { Narrator } from "./narrator.ts";

const PODS = names("web", 6);
const TORN = 2;
const WAIT_MS = 300_000;
/** One event for each of kubelet's attempts to replace the sandbox; it reports no failure to stop the old one. */
const RETRIES = "reason=SandboxChanged";
const RETRY_COLUMNS = "-o=custom-columns=POD:.involvedObject.name,COUNT:.count,MESSAGE:.message";

/** `make demo CLUSTER=1`: a power cut in a real cluster, healed by the agent alone. */
export async function clusterStory(tell: Narrator): Promise<void> {
  tell.say("Starting etcd, kube-apiserver, controller manager, scheduler, containerd and kubelet …");
  const cluster = await startCluster();
  try {
    await atWork(cluster, tell);
    await powerCut(cluster, tell);
    await agentHeals(cluster, tell);
  } finally {
    await cluster.destroy();
  }
}

async function atWork(cluster: Cluster, tell: Narrator): Promise<void> {
  const { node } = cluster;
  tell.heading("A cluster at work");
  await admitAgents(cluster);
  await cluster.apply(podObjects(PODS, node.name));
  await cluster.waitForPods(PODS.length, isReady);
  await shown(cluster, tell, "get", "pods");
}

async function powerCut(cluster: Cluster, tell: Narrator): Promise<void> {
  const { node } = cluster;
  tell.heading("The power of the node goes, and comes back");
  await node.powerCut();
  const torn = globSync(node.lab.path("/var/lib/cni/results/cbr0-*")).slice(0, TORN);
  for (const file of torn) truncateSync(file);
  await node.boot();
  tell.say(
    `${TORN} of ${PODS.length} CNI result files are empty: no plugin syncs them. kubelet brings back the other pods:`,
  );
  await until("kubelet fails to replace the sandboxes with torn files", WAIT_MS, async () =>
    (await cluster.pods()).filter(runsAgain).length === PODS.length - TORN && (await isRetried(cluster))
      ? true
      : undefined,
  );
  await shown(cluster, tell, "get", "pods");
  await shown(cluster, tell, "get", "events", `--field-selector=${RETRIES}`, RETRY_COLUMNS);
}

async function agentHeals(cluster: Cluster, tell: Narrator): Promise<void> {
  const { node } = cluster;
  tell.heading("The agent starts");
  const agent = await agentOn(node, { agent: { defaults: { minAge: "0s" } } });
  await agent.start();
  await cluster.waitForPods(PODS.length, runsAgain);
  await cluster.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  await shown(cluster, tell, "get", "pods");
  tell.say("It reports what it did as events and as a condition of the node:");
  const columns = "-o=custom-columns=REASON:.reason,POD:.involvedObject.name,MESSAGE:.message";
  await shown(cluster, tell, "get", "events", "--field-selector=source=unghost", columns);
  const condition = '-o=jsonpath={.status.conditions[?(@.type=="GhostSandboxes")].message}';
  await shown(cluster, tell, "get", "node", node.name, condition);
}

/** Kubelet has tried more than once for each torn pod. */
async function isRetried({ api }: Cluster): Promise<boolean> {
  const path = `/api/v1/namespaces/default/events?fieldSelector=${RETRIES}`;
  const { items } = await api.get<{ readonly items: readonly { readonly count?: number }[] }>(path);
  return items.filter(({ count = 0 }) => count > 1).length >= TORN;
}

async function shown(cluster: Cluster, tell: Narrator, ...args: readonly string[]): Promise<void> {
  tell.command(`kubectl ${args.join(" ")}`, await cluster.kubectl(...args));
}
