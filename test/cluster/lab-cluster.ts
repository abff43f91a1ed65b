import { readFileSync } from "node:fs";
import { afterEach } from "vitest";
import { AGENT_KUBECONFIG, admitAgents } from "../../lab/cluster/agent.ts";
import { type Cluster, type ClusterOptions, startCluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import type { CommandResult } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtime-config.ts";
import { expectWaitsSeen, watchVerdicts } from "../../lab/verdict-watch.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";

/** Only a hang guard: no test measures time with it. */
export const HANG_GUARD_MS = 900_000;
const COMMAND_MS = 300_000;
export const KUBELET_LOG = "/var/log/kubelet.log";

/** Every runtime of the test with `make cluster-test ALL=1`; otherwise one or two representative ones. */
export function storyRuntimes(
  every: readonly RuntimeVersion[],
  usual: readonly RuntimeVersion[],
): readonly RuntimeVersion[] {
  return process.env["UNGHOST_LAB_ALL"] ? every : usual;
}

const clusters: Cluster[] = [];

afterEach(async () => {
  const ended = clusters.splice(0);
  try {
    for (const { lab } of ended.flatMap(({ nodes }) => nodes)) await expectWaitsSeen(lab, UNGHOST);
  } finally {
    for (const started of ended) await started.destroy();
  }
});

/**
 * A cluster with the agent's ServiceAccount that is destroyed after the test. No scan or heal in it may report a node
 * healthy while pods wait.
 */
export async function cluster(options: ClusterOptions = {}): Promise<Cluster> {
  const started = await startCluster({ ...options, watch: watchVerdicts(UNGHOST) });
  clusters.push(started);
  await admitAgents(started);
  return started;
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
  await until("kubelet fails to stop each pod", HANG_GUARD_MS, () => hasFailedToStop(node, pods) || undefined);
}

/** Whether kubelet has logged that for each pod, after this offset in its log. */
export function hasFailedToStop({ lab }: ClusterNode, pods: readonly string[], after = 0): boolean {
  const failures = readFileSync(lab.path(KUBELET_LOG), "utf8")
    .slice(after)
    .split("\n")
    .filter((line) => /KillPodSandboxError|Failed to stop sandbox/i.test(line));
  return pods.every((pod) => failures.some((line) => line.includes(pod)));
}
