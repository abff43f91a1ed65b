import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { cgroupWithLimits } from "../../lab/cgroup.ts";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { startAttachingDriver } from "../../lab/cluster/csi-attacher.ts";
import { DRIVER_SOCKET, volumeObjects } from "../../lab/cluster/csi-storage.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { isReady, podObjects } from "../../lab/cluster/objects.ts";
import { CNI_BIN_DIR, CNI_CONF_FILE } from "../../lab/cni-config.ts";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { HANG_ONCE } from "../../lab/faults/hung-plugin.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { driverRegistered, podWith } from "./attached-volumes.ts";
import { HANG_GUARD_MS, sharedCluster, WAIT_MS } from "./lab-cluster.ts";
import { agentLog, makeGhost } from "./pod-ghost.ts";

// containerd 1.6 cannot stop a sandbox with a torn cached result.
const story = sharedCluster({
  nodes: 2,
  runtime: "1.6",
  cgroup: cgroupWithLimits(),
  kubelet: { runtimeRequestTimeout: "5s" },
});
const OPERATOR = "/etc/unghost/operator";
const viewer = readFileSync("deploy/rbac/viewer.yaml", "utf8");

const agents: Service[] = [];

afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.end("TERM");
  await story().kubectl("delete", "pods", "--all", "--force", "--grace-period=0");
});

function bothNodes(): readonly [ClusterNode, ClusterNode] {
  const [first, second] = story().nodes;
  if (first === undefined || second === undefined) throw new Error("the story needs two nodes");
  return [first, second];
}

/** An operator with the role unghost-viewer, on a machine that reaches the API server. */
async function operator() {
  const { controlPlane } = story();
  const [, { lab }] = bothNodes();
  const { server, authority } = controlPlane;
  await lab.writeFile(OPERATOR, kubeconfig(server, authority.cert, authority.issue("/CN=jane")), 0o600);
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "unghost-viewer" };
  const subjects = [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" }];
  await story().apply(viewer);
  await story().apply([
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "jane" },
      roleRef,
      subjects,
    },
  ]);
  return async <T>(...args: readonly string[]) => {
    const startedAt = performance.now();
    const ran = await lab.exec([UNGHOST, "fleet", ...args, "-o", "json", `--kubeconfig=${OPERATOR}`], {
      timeoutMs: WAIT_MS,
    });
    const seconds = (performance.now() - startedAt) / 1000;
    if (ran.stdout === "") throw new Error(`unghost fleet ${args.join(" ")}: ${ran.stderr}`);
    return { ...ran, seconds, document: JSON.parse(ran.stdout) as T };
  };
}

/** As an administrator. */
async function withdraw(): Promise<void> {
  const { controlPlane, node } = story();
  const { server, authority } = controlPlane;
  const path = "/etc/unghost/administrator";
  const identity = authority.issue("/O=system:masters/CN=administrator");
  await node.lab.writeFile(path, kubeconfig(server, authority.cert, identity), 0o600);
  const done = await node.lab.check([UNGHOST, "withdraw", `--kubeconfig=${path}`]);
  expect(done).toContain("2 GhostReports");
}

type Operator = Awaited<ReturnType<typeof operator>>;

interface Scanned {
  readonly items: readonly { readonly node: string; readonly verdict: string; readonly agent: string }[];
}

interface Diagnosed {
  readonly items: readonly [{ readonly code: string; readonly class?: string; readonly what: string }];
}

async function startAgent(node: ClusterNode): Promise<void> {
  const agent = await agentOn(node, { agent: { scanEvery: "5s", observeOnly: true, defaults: { minAge: "2s" } } });
  await agent.start();
  agents.push(agent);
}

/** Asks until the answer has this code, which kubelet's events may take a while to allow. */
async function expectCause(
  ask: Operator,
  pod: string,
  expected: { readonly code: string; readonly class?: string; readonly what?: RegExp },
) {
  let last = "";
  const found = await until(
    () => `${pod}: ${JSON.stringify({ ...expected, what: String(expected.what) })}; the last answer was ${last}`,
    WAIT_MS,
    async () => {
      const { document, seconds } = await ask<Diagnosed>("why", pod);
      const [item] = document.items;
      last = JSON.stringify(item);
      const fits =
        item.code === expected.code &&
        (expected.class === undefined || item.class === expected.class) &&
        (expected.what === undefined || expected.what.test(item.what));
      return fits ? { seconds, item } : undefined;
    },
    1000,
  );
  console.log(`why ${pod}: ${found.seconds.toFixed(2)} s: ${found.item.what}`);
}

test(
  "the agent's finding is in the fleet's scan at once, and why names it; without agents why goes by the events",
  async () => {
    const ask = await operator();
    const [node, other] = bothNodes();
    for (const one of bothNodes()) await startAgent(one);
    await story().apply(podObjects(["web-0"], node.name));
    await story().waitForPods(1, isReady);
    const before = await until("both reports are there", WAIT_MS, async () => {
      const { document } = await ask<Scanned>("scan");
      return document.items.every(({ verdict }) => verdict === "healthy") ? document : undefined;
    });
    expect(before.items.map((item) => item.node).toSorted()).toEqual([node.name, other.name].toSorted());

    await makeGhost(node, "web-0");
    await until(
      "the fleet's scan shows the ghost",
      WAIT_MS,
      async () => {
        const { document } = await ask<Scanned>("scan", node.name);
        return document.items[0]?.verdict === "ghosts" ? true : undefined;
      },
      50,
    );
    const shownAt = Date.now();
    const [detected = ""] = agentLog(node)
      .split("\n")
      .filter((line) => line.includes('"ghost detected"'));
    const { time } = JSON.parse(detected) as { readonly time: string };
    console.log(`visible ${shownAt - Date.parse(time)} ms after the agent found it`);
    await expectCause(ask, "default/web-0", { code: "sandbox", class: "libcni-result-cache-corrupt" });

    for (const agent of agents.splice(0)) await agent.end("TERM");
    await withdraw();
    expect(await story().kubectl("get", "ghostreports", "-o=name")).toBe("");
    await story().kubectl("delete", "pod", "web-0", "--wait=false");
    await expectCause(ask, "default/web-0", { code: "sandbox", what: /^Removing its sandbox fails/ });
  },
  HANG_GUARD_MS,
);

const NO_DAEMON = JSON.stringify({
  cniVersion: "1.0.0",
  code: 999,
  msg: 'unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout: Get "http://localhost/v1/config": dial unix /var/run/cilium/cilium.sock: connect: no such file or directory',
});

const withSpec = (name: string, nodeName: string, spec: object): object => {
  const [pod] = podObjects([name], nodeName) as readonly {
    readonly spec: { readonly containers: readonly object[] };
  }[];
  return { ...pod, spec: { ...pod?.spec, ...spec } };
};

test(
  "why names the cause in situations that are not a ghost's, and those of the network and the node",
  async () => {
    const ask = await operator();
    const [node, second] = bothNodes();
    const [container] = (podObjects(["x"], "x")[0] as { readonly spec: { readonly containers: readonly object[] } })
      .spec.containers;

    await story().apply([
      withSpec("no-image", node.name, { containers: [{ name: "main", image: "registry.invalid/none:1" }] }),
      withSpec("no-room", "", {
        nodeName: undefined,
        containers: [{ ...container, resources: { requests: { cpu: "1000" } } }],
      }),
      withSpec("no-settings", node.name, {
        containers: [{ ...container, volumeMounts: [{ name: "settings", mountPath: "/settings" }] }],
        volumes: [{ name: "settings", configMap: { name: "settings" } }],
      }),
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "full" } },
      {
        apiVersion: "v1",
        kind: "ResourceQuota",
        metadata: { namespace: "full", name: "none" },
        spec: { hard: { pods: "0" } },
      },
    ]);
    const labels = { app: "web" };
    await story().apply([
      {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        metadata: { namespace: "full", name: "web" },
        spec: {
          replicas: 1,
          serviceName: "web",
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [container] } },
        },
      },
    ]);
    await orderAtGate(node.lab, "ADD", "held", HANG_ONCE);
    await story().apply(podObjects(["held"], node.name));
    await expectCause(ask, "no-image", { code: "image", what: /image cannot be pulled/ });
    await expectCause(ask, "no-room", { code: "unscheduled", what: /Insufficient cpu|nodes are available/ });
    await expectCause(ask, "no-settings", { code: "volume", what: /^A volume is not mounted/ });
    await expectCause(ask, "full/web-0", { code: "not-created", what: /quota/i });
    await expectCause(ask, "held", { code: "sandbox", class: "sandbox-name-held-by-inflight-run" });

    const conflist = readFileSync(second.lab.path(CNI_CONF_FILE), "utf8");
    await second.lab.writeFile(`${CNI_BIN_DIR}/cilium-cni`, `#!/bin/sh\necho '${NO_DAEMON}'\nexit 1\n`, 0o755);
    await second.lab.writeFile(
      CNI_CONF_FILE,
      JSON.stringify({ cniVersion: "1.0.0", name: "cilium", plugins: [{ type: "cilium-cni" }] }),
    );
    await story().apply(podObjects(["no-daemon"], second.name));
    await expectCause(ask, "no-daemon", { code: "sandbox", class: "cilium-agent-down" });
    await second.lab.check(["rm", CNI_CONF_FILE]);
    await story().apply(podObjects(["no-network"], second.name));
    await expectCause(ask, "no-network", { code: "network-not-ready", class: "cni-not-initialized" });
    await second.lab.writeFile(CNI_CONF_FILE, conflist);
    await until(
      "the node is Ready",
      WAIT_MS,
      async () => {
        const ready = await story().condition(second, "Ready");
        return ready?.status === "True" ? true : undefined;
      },
      500,
    );
    await second.kubelet.end("KILL");
    await expectCause(ask, "no-network", { code: "node-not-ready", what: /has stopped reporting/ });
    await second.kubelet.start();
  },
  HANG_GUARD_MS,
);

const SLEEP = "exec sleep 1000000000";

test(
  "why names a volume that another node has, and a missing socket of its driver",
  async () => {
    const ask = await operator();
    const [node, second] = bothNodes();
    const driver = await startAttachingDriver(story());
    await driverRegistered(story());
    await story().apply([...volumeObjects("data", "vol-1"), podWith("db", node.name, "data", SLEEP)]);
    await until("the pod runs", WAIT_MS, async () => ((await story().pods()).some(isReady) ? true : undefined), 500);
    await story().apply([podWith("db-2", second.name, "data", SLEEP)]);
    await expectCause(ask, "db-2", { code: "volume", what: /^A volume is not attached/ });

    await driver.nodePlugin.end("KILL");
    await node.lab.check(["rm", "-f", DRIVER_SOCKET]);
    await story().apply([...volumeObjects("more", "vol-2"), podWith("db-3", node.name, "more", SLEEP)]);
    await expectCause(ask, "db-3", { code: "volume", what: /csi\.sock|not registered/ });
  },
  HANG_GUARD_MS,
);
