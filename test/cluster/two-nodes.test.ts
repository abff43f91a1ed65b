import { globSync, readFileSync, truncateSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { containersOf, isReady, podObjects } from "../../lab/cluster/objects.ts";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { HANG_ONCE, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { HANG_GUARD_MS, scanOn, sharedCluster, unghostOn, WAIT_MS } from "./lab-cluster.ts";
import { agentLog, healsNewGhost, isHealedByAgent, makeGhost, resultCache } from "./pod-ghost.ts";

// containerd 1.6 cannot stop a sandbox with a torn cached result.
const story = sharedCluster({ nodes: 2, runtime: "1.6", kubelet: { runtimeRequestTimeout: "5s" } });
const CALL = { timeoutMs: WAIT_MS };
const QUICK = { scanEvery: "5s", defaults: { minAge: "2s" } };

const agents: Service[] = [];

afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.end("TERM");
  await story().kubectl("delete", "deployments,pods", "--all", "--force", "--grace-period=0");
});

async function startAgent(node: ClusterNode, fleet: object = {}): Promise<Service> {
  const agent = await agentOn(node, { agent: { ...QUICK, fleet } });
  await agent.start();
  agents.push(agent);
  return agent;
}

function bothNodes(): readonly [ClusterNode, ClusterNode] {
  const [first, second] = story().nodes;
  if (first === undefined || second === undefined) throw new Error("the story needs two nodes");
  return [first, second];
}

function condition(node: ClusterNode, reason: string) {
  return story().waitForCondition(node, "GhostSandboxes", (now) => now.reason === reason);
}

function metrics({ lab }: ClusterNode): Promise<string> {
  return lab.check(["curl", "-sS", "http://127.0.0.1:20258/metrics"]);
}

test(
  "a pod that moved to the other node while its own was off: its old sandbox and address are released, the new one is not touched",
  async () => {
    const [lost, other] = bothNodes();
    await story().kubectl("cordon", other.name);
    await story().apply([deployment("mover")]);
    await story().waitForPods(1, (pod) => isReady(pod) && pod.spec.nodeName === lost.name);
    const [uid = ""] = (await story().pods()).map(({ metadata }) => metadata.uid);
    const [sandbox = ""] = (await sandboxesOf(lost, uid)).map(({ id }) => id);
    expect(addressesOf(lost, sandbox)).toHaveLength(1);

    await lost.powerCut();
    truncateSync(lost.lab.path(resultCache(sandbox)));
    await story().kubectl("cordon", lost.name);
    await story().kubectl("uncordon", other.name);
    await story().kubectl("delete", "pods", "--all", "--force", "--grace-period=0");
    const moved = await story().waitForPods(1, (pod) => isReady(pod) && pod.spec.nodeName === other.name);
    const names = moved.map(({ metadata }) => metadata.name);

    await lost.boot(async () => {
      await startAgent(lost);
    });
    await until(
      () => `the old sandbox is removed; the agent last logged ${agentLog(lost).slice(-1000)}`,
      WAIT_MS,
      async () => ((await sandboxesOf(lost, uid)).length === 0 ? true : undefined),
      500,
    );
    expect(addressesOf(lost, sandbox)).toEqual([]);
    await condition(lost, "NoGhostSandboxes");
    for (const node of bothNodes()) expect(await scanOn(node)).toMatchObject({ verdict: "healthy", findings: [] });
    expect(containersOf(await story().pods(), names)).toEqual(containersOf(moved, names));
    await story().kubectl("uncordon", lost.name);
  },
  HANG_GUARD_MS,
);

test(
  "with one slot for disruptive heals the agents of both nodes wait for its holder, and then heal one after the other",
  async () => {
    await story().apply([slot("elsewhere")]);
    for (const [index, node] of bothNodes().entries()) {
      const pod = `hangs-${index}`;
      await orderAtGate(node.lab, "ADD", pod, HANG_ONCE);
      await story().apply(podObjects([pod], node.name));
    }
    for (const node of bothNodes()) await startAgent(node, { slots: 1 });

    for (const [index, node] of bothNodes().entries()) {
      await until(`the agent of ${node.name} waits for the slot`, WAIT_MS, () =>
        agentLog(node).includes("(elsewhere)") ? true : undefined,
      );
      expect(pluginOf(node.lab, "ADD", `hangs-${index}`)).toBeDefined();
      expect(await metrics(node)).toMatch(/^unghost_refusals_total\{reason="slots"\} [1-9]/m);
    }

    await story().kubectl("patch", "lease", SLOT, "--namespace=unghost", `-p=${JSON.stringify(slot(null))}`);
    const holders = new Set<string>();
    await until(
      () => `both agents have held the slot, and not ${[...holders].join(" and ") || "none"}`,
      WAIT_MS,
      async () => {
        const { spec } = await readSlot();
        if (spec.holderIdentity !== undefined) holders.add(spec.holderIdentity);
        return spec.holderIdentity === undefined && holders.size === 2 ? true : undefined;
      },
    );
    expect(holders).toEqual(new Set(bothNodes().map(({ name }) => name)));
    await story().waitForPods(2, isReady);
    for (const node of bothNodes()) await condition(node, "NoGhostSandboxes");
  },
  HANG_GUARD_MS,
);

test(
  "both nodes turn unhealthy at once: no agent heals until an operator has healed them, then the agents heal again",
  async () => {
    const pods = ["web-0", "web-1"] as const;
    const nodes = bothNodes();
    await story().apply(pods.flatMap((pod, index) => podObjects([pod], nodes[index]?.name ?? "")));
    await story().waitForPods(2, isReady);
    // Paused until both have reported: an agent heals faster than the other one finds its ghost.
    await story().kubectl("annotate", "nodes", "--all", "unghost.dev/paused=true");
    const ghosts = [await makeGhost(nodes[0], pods[0]), await makeGhost(nodes[1], pods[1])];
    for (const node of nodes) await startAgent(node, { breakerShare: 1, breakerAtLeast: 2 });
    for (const node of nodes) await condition(node, "HealingPaused");

    await story().kubectl("annotate", "nodes", "--all", "unghost.dev/paused-");
    for (const [index, node] of nodes.entries()) {
      const { message } = await condition(node, "BreakerOpen");
      expect(message).toContain("2 of 2 nodes became unhealthy within 10 minutes");
      expect(await metrics(node)).toMatch(/^unghost_circuit_breaker_open 1$/m);
      expect(readFileSync(node.lab.path(resultCache(ghosts[index] ?? "")), "utf8")).toBe("");
    }

    for (const node of nodes) await unghostOn(node, "heal", "--yes");
    await story().waitForPods(2, isReady);
    for (const node of nodes) await condition(node, "NoGhostSandboxes");
    for (const node of nodes) {
      await until(`the breaker of ${node.name} is closed`, WAIT_MS, async () =>
        (await metrics(node)).includes("unghost_circuit_breaker_open 0\n") ? true : undefined,
      );
    }
    expect(nodes.map((node, index) => isHealedByAgent(node, ghosts[index] ?? ""))).toEqual([false, false]);
    await healsNewGhost(nodes[0], pods[0]);
  },
  HANG_GUARD_MS,
);

/** One replica, wherever the scheduler places it. */
function deployment(name: string): object {
  const labels = { app: name };
  const [pod] = podObjects([name], "") as readonly { readonly spec: object }[];
  const spec = { ...pod?.spec, nodeName: undefined };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: "default" },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

async function sandboxesOf({ lab }: ClusterNode, uid: string) {
  return (await lab.cri.listPodSandbox(undefined, CALL)).filter(({ metadata }) => metadata?.uid === uid);
}

/** The files in which host-local keeps its addresses. The story's power cut does not tear them. */
function addressesOf({ lab }: ClusterNode, sandbox: string): readonly string[] {
  const files = globSync(lab.path("/var/lib/cni/networks/cbr0/*.*.*.*"));
  return files.filter((file) => readFileSync(file, "utf8").includes(sandbox));
}

const SLOT = "unghost-heal-0";

interface Slot {
  readonly spec: { readonly holderIdentity?: string };
}

function slot(holderIdentity: string | null): object {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { namespace: "unghost", name: SLOT },
    spec: { holderIdentity, leaseDurationSeconds: 3600 },
  };
}

function readSlot(): Promise<Slot> {
  return story().api.get<Slot>(`/apis/coordination.k8s.io/v1/namespaces/unghost/leases/${SLOT}`);
}
