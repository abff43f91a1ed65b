import { existsSync } from "node:fs";
import type { LabNode } from "./node.ts";
import type { PodSpec } from "./pods.ts";
import { until } from "./poll.ts";
import type { PodObjectParts } from "./stub-api.ts";

export const CSI_DRIVER = "lab.csi.unghost.dev";
const SOCKET_DIR = `/var/lib/kubelet/plugins/${CSI_DRIVER}`;
export const CSI_SOCKET = `${SOCKET_DIR}/csi.sock`;
const START_MS = 60_000;

/** Listens where the driver's node plugin does, until the power is cut; the file of the socket outlives it. */
export async function serveCsiSocket(node: LabNode): Promise<void> {
  const ready = "/run/lab-csi.ready";
  const program = `
    const { mkdirSync, rmSync, writeFileSync } = require("node:fs");
    mkdirSync("${SOCKET_DIR}", { recursive: true });
    rmSync("${CSI_SOCKET}", { force: true });
    require("node:net").createServer().listen("${CSI_SOCKET}", () => writeFileSync("${ready}", ""));`;
  await node.writeFile("/opt/lab-csi.cjs", program);
  await node.check(["sh", "-c", `setsid ${process.execPath} /opt/lab-csi.cjs </dev/null >/dev/null 2>&1 &`]);
  await until("the CSI socket is served", START_MS, () => (existsSync(node.livePath(ready)) ? true : undefined));
}

/** The driver's node plugin as its DaemonSet makes it. */
export const CSI_PLUGIN = {
  namespace: "default",
  name: "lab-csi-node-x7k2p",
  containers: [{ name: "plugin" }, { name: "node-driver-registrar" }],
} as const satisfies PodSpec;

/** What the API says of it. */
export const CSI_PLUGIN_OBJECT: PodObjectParts = {
  metadata: { ownerReferences: [{ kind: "DaemonSet", name: "lab-csi-node", controller: true }] },
  spec: {
    containers: CSI_PLUGIN.containers,
    volumes: [
      { name: "registration", hostPath: { path: "/var/lib/kubelet/plugins_registry" } },
      { name: "socket", hostPath: { path: SOCKET_DIR } },
    ],
  },
};

/** A sidecar in a pod of its own, as Longhorn's attacher is, that crashes for want of the socket. */
export const CRASHING_SIDECAR: PodObjectParts = {
  metadata: { ownerReferences: [{ kind: "ReplicaSet", name: "lab-csi-attacher", controller: true }] },
  spec: { containers: [{ name: "attacher" }], volumes: [{ name: "socket", hostPath: { path: SOCKET_DIR } }] },
  status: { containerStatuses: [{ restartCount: 40, state: { waiting: { reason: "CrashLoopBackOff" } } }] },
};
