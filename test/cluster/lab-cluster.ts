import { afterEach } from "vitest";
import { AGENT_KUBECONFIG, admitAgents } from "../../lab/cluster/agent.ts";
import { type Cluster, type ClusterOptions, startCluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import type { CommandResult } from "../../lab/command.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";

/** Only against hanging: no test measures time with it. */
export const HANG_GUARD_MS = 900_000;
const COMMAND_MS = 300_000;

const clusters: Cluster[] = [];

afterEach(async () => {
  for (const started of clusters.splice(0)) await started.destroy();
});

/** A cluster that knows the agent's ServiceAccount and is destroyed after the test, however that ends. */
export async function cluster(options: ClusterOptions = {}): Promise<Cluster> {
  const started = await startCluster(options);
  clusters.push(started);
  await admitAgents(started);
  return started;
}

/** Runs the built executable on the node, as a person with the agent's credentials. */
export function unghostOn({ lab }: ClusterNode, ...args: readonly string[]): Promise<CommandResult> {
  return lab.exec([UNGHOST, ...args, "--kubeconfig", AGENT_KUBECONFIG], { timeoutMs: COMMAND_MS });
}

export async function scanOn(node: ClusterNode, ...args: readonly string[]): Promise<NodeReport> {
  return reportOf(await unghostOn(node, "scan", "-o", "json", ...args));
}

/** Those of the pods that the report names anywhere but among what it keeps on purpose. */
export function namedIn(report: NodeReport, pods: readonly string[]): readonly string[] {
  const text = JSON.stringify({ ...report, kept: [] });
  return pods.filter((pod) => new RegExp(`\\b${pod}\\b(?!-)`).test(text));
}
