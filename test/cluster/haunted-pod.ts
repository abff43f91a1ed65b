import { truncateSync } from "node:fs";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { until } from "../../lab/poll.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { HANG_GUARD_MS } from "./lab-cluster.ts";

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
export async function haunt(node: ClusterNode, pod: string): Promise<string> {
  const id = await sandboxOf(node, pod);
  if (id === undefined) throw new Error(`${pod} does not run`);
  truncateSync(node.lab.path(resultCache(id)));
  await node.lab.check(["ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", id]);
  return id;
}

export async function runsAgain(node: ClusterNode, pod: string, ghost: string): Promise<void> {
  await until(`${pod} runs in another sandbox`, HANG_GUARD_MS, async () => {
    const id = await sandboxOf(node, pod);
    return id !== undefined && id !== ghost ? true : undefined;
  });
}
