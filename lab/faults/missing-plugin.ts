import { rm } from "node:fs/promises";
import { bridgeNetwork, CNI_BIN_DIR, CNI_CONF_FILE, type CniConflist } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import { until } from "../poll.ts";
import type { Injected } from "./injected.ts";

const CHAINED = "tuning";
const NOTICE_MS = 60_000;

/**
 * The lab's network with one more real plugin in the chain. Start the node with it, run pods, then remove the binary.
 */
export function chainedNetwork(): CniConflist {
  const network = bridgeNetwork();
  return { ...network, plugins: [...network.plugins, { type: CHAINED }] };
}

/** The chained plugin is uninstalled while pods still need it for their DEL. */
export async function missingPlugin(node: LabNode): Promise<Injected> {
  const path = `${CNI_BIN_DIR}/${CHAINED}`;
  await rm(node.path(path));
  return { fault: "missing-plugin", did: `removed the plugin ${path} that the network still names`, path };
}

/** No network configuration, as before the first start of the network's DaemonSet. */
export async function missingNetwork(node: LabNode): Promise<Injected> {
  await rm(node.path(CNI_CONF_FILE));
  await until("containerd has noticed that the network is gone", NOTICE_MS, async () => {
    const { status } = await node.cri.status({ timeoutMs: NOTICE_MS });
    const network = status?.conditions.find((condition) => condition.type === "NetworkReady");
    return network?.status === false ? true : undefined;
  });
  return { fault: "missing-network", did: `removed ${CNI_CONF_FILE}, the only network`, path: CNI_CONF_FILE };
}
