import { join } from "node:path";
import { runOrThrow } from "../command.ts";
import type { Tools } from "../tools.ts";

/** The cluster's network: a bridge in the control plane's network namespace. Nothing of it is on this machine. */
export const CONTROL_PLANE_IP = "192.168.77.1";

/**
 * The Service `kubernetes`: without kube-proxy its address is one of the control plane's own, with the port that pods
 * use.
 */
export const KUBERNETES_SERVICE_IP = "10.96.0.1";
export const API_SERVER_PORT = 443;

const ATTACH_MS = 60_000;

export function nodeIp(index: number): string {
  return `192.168.77.${11 + index}`;
}

/**
 * Connects a node. The bridge plugin treats the node's network namespace like a pod's. The link is removed with the
 * namespace, so each boot needs a new one.
 */
export async function attachNode(tools: Tools, controlPlanePid: number, nodePid: number, ip: string): Promise<void> {
  const plugin = join(tools.cniBinDir, "bridge");
  const config = {
    cniVersion: "1.0.0",
    name: "lab-cluster",
    type: "bridge",
    bridge: "lab0",
    isGateway: true,
    ipam: {
      type: "static",
      addresses: [{ address: `${ip}/24`, gateway: CONTROL_PLANE_IP }],
      routes: [{ dst: "0.0.0.0/0" }],
    },
  };
  const env = {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: `node-${ip.replaceAll(".", "-")}`,
    CNI_NETNS: `/proc/${nodePid}/ns/net`,
    CNI_IFNAME: "eth0",
    CNI_PATH: tools.cniBinDir,
  };
  const command = ["nsenter", "-t", String(controlPlanePid), "-n", plugin];
  await runOrThrow(command, { env, stdin: JSON.stringify(config), timeoutMs: ATTACH_MS });
}
