import { existsSync, readFileSync, truncateSync } from "node:fs";
import { AGENT_LOG } from "../../lab/cluster/agent.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { until } from "../../lab/poll.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { WAIT_MS } from "./lab-cluster.ts";

const CALL = { timeoutMs: 60_000 };

export async function sandboxOf({ lab }: ClusterNode, pod: string): Promise<string | undefined> {
  const ready = { state: { state: PodSandboxState.SANDBOX_READY } };
  return (await lab.cri.listPodSandbox(ready, CALL)).find(({ metadata }) => metadata?.name === pod)?.id;
}

/** The file that containerd 1.6 reads when it stops the sandbox. */
export function resultCache(id: string): string {
  return `/var/lib/cni/results/cbr0-${id}-eth0`;
}

/** The pod dies with a torn cache: with containerd 1.6 kubelet cannot restart it until that file is removed. */
export async function makeGhost(node: ClusterNode, pod: string): Promise<string> {
  const id = await sandboxOf(node, pod);
  if (id === undefined) throw new Error(`${pod} does not run`);
  truncateSync(node.lab.path(resultCache(id)));
  await node.lab.check(["ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", id]);
  return id;
}

export async function runsAgain(node: ClusterNode, pod: string, ghost: string): Promise<void> {
  const what = () =>
    `${pod} runs in another sandbox than ${ghost}; the agent last logged ${agentLog(node).slice(-1000)}`;
  await until(what, WAIT_MS, async () => {
    const id = await sandboxOf(node, pod);
    return id !== undefined && id !== ghost ? true : undefined;
  });
}

export function agentLog({ lab }: ClusterNode): string {
  const log = lab.path(AGENT_LOG);
  return existsSync(log) ? readFileSync(log, "utf8") : "";
}

/** Whether the agent has logged that it healed this sandbox. */
export function isHealedByAgent(node: ClusterNode, ghost: string): boolean {
  return agentLog(node)
    .split("\n")
    .some((line) => line.includes('"ghost healed"') && line.includes(ghost));
}

export async function healedByAgent(node: ClusterNode, pod: string, ghost: string): Promise<void> {
  await runsAgain(node, pod, ghost);
  await until(`the agent has healed ${pod}`, WAIT_MS, () => isHealedByAgent(node, ghost) || undefined);
}

export async function healsNewGhost(node: ClusterNode, pod: string): Promise<void> {
  await healedByAgent(node, pod, await makeGhost(node, pod));
}
