import { join } from "node:path";
import { runOrThrow } from "../command.ts";
import type { Tools } from "../tools.ts";
import type { ControlPlane } from "./control-plane.ts";

/** The addresses of a cluster, whose network is a bridge in the control plane's namespace. Nothing of it is on this machine. */
export interface ClusterAddresses {
  readonly controlPlane: string;
  /**
   * The Service `kubernetes`: without kube-proxy its address is one of the control plane's own, with the port that pods
   * use.
   */
  readonly kubernetesService: string;
  readonly services: string;
  /** Of one address. */
  readonly hostPrefix: number;
  /** Of the nodes' network. */
  readonly prefix: number;
  readonly everywhere: string;
  node(index: number): string;
  /** Pods of a node. */
  podSubnet(index: number): string;
}

export const IPV4: ClusterAddresses = {
  controlPlane: "192.168.77.1",
  kubernetesService: "10.96.0.1",
  services: "10.96.0.0/16",
  hostPrefix: 32,
  prefix: 24,
  everywhere: "0.0.0.0/0",
  node: (index) => `192.168.77.${11 + index}`,
  podSubnet: (index) => `10.88.${index}.0/24`,
};

/** Unique local addresses, and no IPv4 but loopback. */
export const IPV6: ClusterAddresses = {
  controlPlane: "fd00:77::1",
  kubernetesService: "fd00:96::1",
  services: "fd00:96::/112",
  hostPrefix: 128,
  prefix: 64,
  everywhere: "::/0",
  node: (index) => `fd00:77::${11 + index}`,
  podSubnet: (index) => `fd00:88:0:${index}::/64`,
};

export const CONTROL_PLANE_IP = IPV4.controlPlane;
export const API_SERVER_PORT = 443;

const ATTACH_MS = 60_000;

/**
 * Connects a node. The bridge plugin treats the node's network namespace like a pod's. The link is removed with the
 * namespace, so each boot needs a new one.
 */
export async function attachNode(
  tools: Tools,
  { initPid: controlPlanePid, addresses }: Pick<ControlPlane, "initPid" | "addresses">,
  nodePid: number,
  ip: string,
): Promise<void> {
  const plugin = join(tools.cniBinDir, "bridge");
  const config = {
    cniVersion: "1.0.0",
    name: "lab-cluster",
    type: "bridge",
    bridge: "lab0",
    isGateway: true,
    ipam: {
      type: "static",
      addresses: [{ address: `${ip}/${addresses.prefix}`, gateway: addresses.controlPlane }],
      routes: [{ dst: addresses.everywhere }],
    },
  };
  const env = {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: `node-${ip.replaceAll(/[.:]+/g, "-")}`,
    CNI_NETNS: `/proc/${nodePid}/ns/net`,
    CNI_IFNAME: "eth0",
    CNI_PATH: tools.cniBinDir,
  };
  const command = ["nsenter", "-t", String(controlPlanePid), "-n", plugin];
  await runOrThrow(command, { env, stdin: JSON.stringify(config), timeoutMs: ATTACH_MS });
}
