import { resolve } from "node:path";
import { afterEach } from "vitest";
import { stringify } from "yaml";
import type { CgroupVersion } from "../../lab/cgroup.ts";
import { ensureClusterTools } from "../../lab/cluster/tools.ts";
import { PAUSE_IMAGE } from "../../lab/pause-image.ts";
import { until } from "../../lab/poll.ts";
import { containerd2Layout, containerdLayout, k3sLayout, type Layout, MANIFESTS } from "../../lab/systemd/layout.ts";
import { DOWNLOADED, type SystemdNode, startSystemdNode } from "../../lab/systemd/node.ts";
import { ensureContainerd } from "../../lab/tools.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { ContainerState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";

/** Only a hang guard: no test measures time with it. */
export const HANG_GUARD_MS = 600_000;
/** The same for one wait in a test: it fails before the test does, and names what was waited for. */
export const WAIT_MS = 200_000;
const CALL = { timeoutMs: 30_000 };

export const LAYOUTS = ["containerd", "k3s"] as const;
export const ALL_LAYOUTS = [...LAYOUTS, "containerd 2"] as const;

export interface BootedNode extends SystemdNode {
  readonly layout: Layout;
  /** Pod -> the id of its running container. */
  runningPods(): Promise<ReadonlyMap<string, string>>;
  /** Static pods, which kubelet starts on its own; waits until they run. Returns their containers. */
  startPods(names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Waits until exactly these pods run in containers that are not in `before`. */
  waitForPods(names: readonly string[], before?: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, string>>;
  install(...options: readonly string[]): Promise<void>;
  scan(): Promise<NodeReport>;
  /** What unghost has changed on the node. */
  changes(): Promise<readonly Change[]>;
}

interface Change {
  readonly at: Date;
  readonly text: string;
}

const nodes: SystemdNode[] = [];

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.destroy();
});

/** A node that is destroyed after the test. unghost is on it and not installed. */
export async function systemdNode(
  kind: (typeof ALL_LAYOUTS)[number] = "containerd",
  cgroup?: CgroupVersion,
): Promise<BootedNode> {
  const tools = await ensureClusterTools();
  if (!tools.available) throw new Error(tools.reason);
  const kubelet = `${tools.kubernetesDir}/kubelet`;
  const layout = await layoutOf(kind, kubelet);
  const node = await startSystemdNode(layout, resolve(UNGHOST), cgroup);
  nodes.push(node);

  async function runningPods(): Promise<ReadonlyMap<string, string>> {
    const cri = openCri(node.livePath(layout.socket));
    try {
      const containers = await cri.listContainers({ state: { state: ContainerState.CONTAINER_RUNNING } }, CALL);
      return new Map(containers.map(({ id, labels }) => [nameOf(labels["io.kubernetes.pod.name"] ?? "", node), id]));
    } finally {
      cri.close();
    }
  }

  async function waitForPods(
    names: readonly string[],
    before: ReadonlyMap<string, string> = new Map(),
  ): Promise<ReadonlyMap<string, string>> {
    const old = new Set(before.values());
    return await until(`${names.join(", ")} run`, WAIT_MS, async () => {
      // The runtime may be starting.
      const running = await runningPods().catch(() => undefined);
      const isSo = running?.size === names.length && names.every((name) => isNew(running.get(name), old));
      return isSo ? running : undefined;
    });
  }

  return {
    ...node,
    layout,
    runningPods,
    waitForPods,
    startPods: async (names) => {
      for (const name of names) await node.writeFile(`${MANIFESTS}/${name}.yaml`, manifest(name));
      return await waitForPods(names);
    },
    install: async (...options) => {
      await node.check([DOWNLOADED, "install", "--yes", ...options]);
    },
    scan: async () => reportOf(await node.exec([DOWNLOADED, "scan", "-o", "json"])),
    changes: async () => {
      const history: { readonly entries: readonly { readonly at: string }[] } = JSON.parse(
        await node.check([DOWNLOADED, "history", "-o", "json"]),
      );
      return history.entries.map((entry) => ({ at: new Date(entry.at), text: JSON.stringify(entry) }));
    },
  };
}

async function layoutOf(kind: (typeof ALL_LAYOUTS)[number], kubelet: string): Promise<Layout> {
  if (kind === "k3s") return k3sLayout(kubelet);
  if (kind === "containerd") return containerdLayout(kubelet);
  const containerd2 = await ensureContainerd();
  if (!containerd2.available) throw new Error(containerd2.reason);
  return containerd2Layout(kubelet, containerd2.binDir);
}

function isNew(id: string | undefined, old: ReadonlySet<string>): boolean {
  return id !== undefined && !old.has(id);
}

/** Kubelet appends the node's name to that of a static pod. */
function nameOf(podName: string, { hostname }: SystemdNode): string {
  return podName.replace(`-${hostname}`, "");
}

export function manifest(name: string): string {
  return stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [
        { name: "main", image: PAUSE_IMAGE, imagePullPolicy: "Never", command: ["sh", "-c", "exec sleep 1000000000"] },
      ],
    },
  });
}
