import { bridgeNetwork, type CniConflist } from "../cni-config.ts";
import { type LabNode, type NodeOptions, startNode } from "../node.ts";
import type { RuntimeVersion } from "../runtimes.ts";
import type { Service } from "../service.ts";
import type { Tools } from "../tools.ts";
import type { ControlPlane } from "./control-plane.ts";
import { installKubelet, type KubeletSettings, prepareForKubelet } from "./kubelet.ts";
import { attachNode, type ClusterAddresses } from "./network.ts";
import type { ClusterTools } from "./tools.ts";

/** A lab node with a real kubelet. */
export interface ClusterNode {
  /** Of the Node object. */
  readonly name: string;
  readonly ip: string;
  readonly lab: LabNode;
  readonly kubelet: Service;
  powerCut(): Promise<void>;
  /** Power on, containerd, network cable, kubelet. `beforeKubelet` is for a boot hook or another service. */
  boot(beforeKubelet?: () => Promise<void>): Promise<void>;
}

export interface ClusterNodeOptions extends Pick<NodeOptions, "watch" | "disk" | "cgroup" | "runtimeConfig"> {
  readonly runtime: RuntimeVersion;
  readonly kubelet: KubeletSettings;
  readonly addresses: ClusterAddresses;
}

export async function startClusterNode(
  index: number,
  starting: Promise<ControlPlane>,
  tools: Tools,
  programs: ClusterTools,
  { kubelet: settings, ...options }: ClusterNodeOptions,
): Promise<ClusterNode> {
  const { addresses, ...nodeOptions } = options;
  const ip = addresses.node(index);
  const lab = await startNode({ ...nodeOptions, cni: podNetwork(index, addresses) });
  try {
    const controlPlane = await starting;
    const kubelet = await installKubelet(lab, ip, controlPlane, programs, settings);
    const join = async (beforeKubelet?: () => Promise<void>) => {
      await attachNode(tools, controlPlane, lab.initPid, ip);
      await prepareForKubelet(lab);
      await beforeKubelet?.();
      await kubelet.start();
    };
    await join();
    return {
      name: lab.hostname,
      ip,
      lab,
      kubelet,
      powerCut: () => lab.powerCut(),
      boot: async (beforeKubelet) => {
        await lab.powerOn();
        await join(beforeKubelet);
      },
    };
  } catch (error) {
    await lab.destroy();
    throw error;
  }
}

/** A separate range for each node's pods. */
function podNetwork(index: number, addresses: ClusterAddresses): CniConflist {
  const network = bridgeNetwork();
  const ipam = {
    type: "host-local",
    ranges: [[{ subnet: addresses.podSubnet(index) }]],
    routes: [{ dst: addresses.everywhere }],
  };
  return { ...network, plugins: [{ ...network.plugins[0], ipam }] };
}
