import { CNI_CONF_FILE, type CniConflist } from "./cni-config.ts";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";

const RELOAD_MS = 60_000;

/** Gives the node another network and waits until the running containerd has loaded it. */
export async function useNetwork(node: LabNode, network: CniConflist): Promise<void> {
  const text = JSON.stringify(network);
  await node.writeFile(CNI_CONF_FILE, text);
  await waitForNetwork(node, text);
}

/** Waits until containerd's effective configuration contains this text. */
export async function waitForNetwork(node: LabNode, text: string): Promise<void> {
  await until(`containerd has taken up the network ${text}`, RELOAD_MS, async () => {
    const { info } = await node.cri.status({ timeoutMs: RELOAD_MS });
    // The verbose status contains the configuration as a string inside JSON.
    return info["cniconfig"]?.includes(JSON.stringify(text).slice(1, -1)) ? true : undefined;
  });
}
