import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll } from "vitest";
import { AGENT_KUBECONFIG, admitAgents } from "../../lab/cluster/agent.ts";
import { type Cluster, type ClusterOptions, startCluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import type { CommandResult } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import { expectWaitsSeen, watchVerdicts } from "../../lab/verdict-watch.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";

/** Only a hang guard: no test measures time with it. */
export const HANG_GUARD_MS = 900_000;
/** The same for one wait in a test: it fails before the test does, and names what was waited for. */
export const WAIT_MS = 300_000;
const COMMAND_MS = 300_000;
export const KUBELET_LOG = "/var/log/kubelet.log";

/** Every runtime of the test with `make cluster-test ALL=1`; otherwise one or two representative ones. */
export function storyRuntimes(
  every: readonly RuntimeVersion[],
  usual: readonly RuntimeVersion[],
): readonly RuntimeVersion[] {
  return process.env["UNGHOST_LAB_ALL"] ? every : usual;
}

const ofThisTest: Cluster[] = [];

afterEach(() => end(ofThisTest.splice(0)));

/** A cluster that is destroyed after the test, however that ends. */
export async function cluster(options: ClusterOptions = {}): Promise<Cluster> {
  const started = await startKnown(options);
  ofThisTest.push(started);
  return started;
}

/** One cluster for all tests of a file, from the first test on. */
export function sharedCluster(options: ClusterOptions = {}): () => Cluster {
  let shared: Cluster | undefined;
  beforeAll(async () => {
    shared = await startKnown(options);
  }, HANG_GUARD_MS);
  afterAll(() => end(shared === undefined ? [] : [shared]), HANG_GUARD_MS);
  return () => {
    if (shared === undefined) throw new Error("the cluster has not been started");
    return shared;
  };
}

/** Knows the agent's ServiceAccount. No scan or heal in it reports a node healthy while pods wait. */
async function startKnown(options: ClusterOptions): Promise<Cluster> {
  const started = await startCluster({ ...options, watch: watchVerdicts(UNGHOST) });
  try {
    await admitAgents(started);
    return started;
  } catch (error) {
    await started.destroy();
    throw error;
  }
}

async function end(clusters: readonly Cluster[]): Promise<void> {
  try {
    for (const { lab } of clusters.flatMap(({ nodes }) => nodes)) await expectWaitsSeen(lab, UNGHOST);
  } finally {
    for (const started of clusters) await started.destroy();
  }
}

/** Runs the built executable on the node, like an operator with the agent's credentials. */
export function unghostOn({ lab }: ClusterNode, ...args: readonly string[]): Promise<CommandResult> {
  return lab.exec([UNGHOST, ...args, "--kubeconfig", AGENT_KUBECONFIG], { timeoutMs: COMMAND_MS });
}

export async function scanOn(node: ClusterNode, ...args: readonly string[]): Promise<NodeReport> {
  return reportOf(await unghostOn(node, "scan", "-o", "json", ...args));
}

/** Those of the pods that the report names anywhere except for the kept ones. */
export function namedIn(report: NodeReport, pods: readonly string[]): readonly string[] {
  const text = JSON.stringify({ ...report, kept: [] });
  return pods.filter((pod) => new RegExp(`\\b${pod}\\b(?!-)`).test(text));
}

/** Waits until kubelet has logged a failed stop for each pod. */
export async function stopFails(node: ClusterNode, pods: readonly string[]): Promise<void> {
  await until("kubelet fails to stop each pod", WAIT_MS, () => hasFailedToStop(node, pods) || undefined);
}

/** Whether kubelet has logged that for each pod, after this offset in its log. */
export function hasFailedToStop({ lab }: ClusterNode, pods: readonly string[], after = 0): boolean {
  const failures = readFileSync(lab.path(KUBELET_LOG), "utf8")
    .slice(after)
    .split("\n")
    .filter((line) => /KillPodSandboxError|Failed to stop sandbox/i.test(line));
  return pods.every((pod) => failures.some((line) => line.includes(pod)));
}
