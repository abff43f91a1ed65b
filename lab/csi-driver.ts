import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { LabNode } from "./node.ts";
import type { PodSpec } from "./pods.ts";
import { until } from "./poll.ts";
import type { PodObjectParts } from "./stub-api.ts";

export const CSI_DRIVER = "lab.csi.unghost.dev";
const START_MS = 60_000;

/** The pod of the driver's node plugin, as its DaemonSet creates it. */
export const CSI_PLUGIN = {
  namespace: "default",
  name: "lab-csi-node-x7k2p",
  containers: [{ name: "plugin" }, { name: "node-driver-registrar" }],
} as const satisfies PodSpec;

export interface CsiDriver {
  readonly socket: string;
  /** The API's objects of its node plugin. */
  readonly plugin: PodObjectParts;
  /** A sidecar in a separate pod, like Longhorn's attacher, that crashes without the socket. */
  readonly sidecar: PodObjectParts;
  /** Listens like the node plugin, until the power cut; the socket file stays. */
  serve(node: LabNode): Promise<void>;
}

/** The driver on a node with this kubelet root directory. */
export function csiDriver(kubeletRoot = "/var/lib/kubelet"): CsiDriver {
  const dir = `${kubeletRoot}/plugins/${CSI_DRIVER}`;
  const socket = `${dir}/csi.sock`;
  const mount = { name: "socket", hostPath: { path: dir } };
  const ended = { exitCode: 1, reason: "Error", finishedAt: new Date().toISOString() };
  return {
    socket,
    plugin: {
      metadata: { ownerReferences: [{ kind: "DaemonSet", name: "lab-csi-node", controller: true }] },
      spec: {
        containers: CSI_PLUGIN.containers,
        volumes: [{ name: "registration", hostPath: { path: `${kubeletRoot}/plugins_registry` } }, mount],
      },
    },
    sidecar: {
      metadata: { ownerReferences: [{ kind: "ReplicaSet", name: "lab-csi-attacher", controller: true }] },
      spec: { containers: [{ name: "attacher" }], volumes: [mount] },
      // The status of kubelet 1.36 between two starts, for most of the time.
      status: {
        containerStatuses: [{ restartCount: 40, state: { terminated: ended }, lastState: { terminated: ended } }],
      },
    },
    serve: (node) => serveSocket(node, dir, socket),
  };
}

async function serveSocket(node: LabNode, dir: string, socket: string): Promise<void> {
  const ready = "/run/lab-csi.ready";
  const program = `
    const { mkdirSync, rmSync, writeFileSync } = require("node:fs");
    mkdirSync("${dir}", { recursive: true });
    rmSync("${socket}", { force: true });
    require("node:net").createServer().listen("${socket}", () => writeFileSync("${ready}", ""));`;
  await rm(node.livePath(ready), { force: true });
  await node.writeFile("/opt/lab-csi.cjs", program);
  await node.check(["sh", "-c", `setsid ${process.execPath} /opt/lab-csi.cjs </dev/null >/dev/null 2>&1 &`]);
  await until("the CSI socket is served", START_MS, () => (existsSync(node.livePath(ready)) ? true : undefined));
}
