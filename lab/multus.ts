import { symlink } from "node:fs/promises";
import { bridgeNetwork, CNI_BIN_DIR, CNI_CONF_FILE, type CniConflist } from "./cni-config.ts";
import { waitForNetwork } from "./cni-network.ts";
import { DELEGATE, DELEGATE_SOCKET, installDelegate, startDelegateDaemon } from "./delegate-daemon.ts";
import type { LabNode } from "./node.ts";
import type { MultusVersion } from "./runtimes.ts";
import { STUB_KUBECONFIG, startStubApi } from "./stub-api.ts";
import { ensureMultus, type Multus } from "./tools.ts";

export const MULTUS_CACHE_DIR = "/var/lib/cni/multus";
export const MULTUS_CONF_FILE = "/etc/cni/net.d/00-multus.conf";

/** Thin multus before the node's network, with its API server. Start that again after a boot. */
export async function useMultus(node: LabNode, version?: MultusVersion): Promise<void> {
  await startStubApi(node);
  await useMultusWith(STUB_KUBECONFIG, node, version);
}

/** Thin multus whose delegate calls its own daemon, like kube-ovn. */
export async function useMultusWithDaemon(node: LabNode): Promise<void> {
  await useMultus(node);
  await setDelegate(node, "asks-daemon");
  await startDelegateDaemon(node);
}

/** Thin multus that asks another API server about pods. */
export async function useMultusWith(kubeconfig: string, node: LabNode, version?: MultusVersion): Promise<void> {
  const multus = await multusOrThrow(version);
  await symlink(multus.binary, node.path(`${CNI_BIN_DIR}/multus`));
  await installDelegate(node);
  await setDelegate(node, "complete");
  const conf = JSON.stringify({
    cniVersion: "0.4.0",
    name: "multus-cni-network",
    type: "multus",
    kubeconfig,
    clusterNetwork: CNI_CONF_FILE,
    cniDir: MULTUS_CACHE_DIR,
    logFile: "/var/log/multus.log",
    logLevel: "debug",
  });
  await node.writeFile(MULTUS_CONF_FILE, conf);
  await waitForNetwork(node, "multus-cni-network");
}

export async function multusOrThrow(version?: MultusVersion): Promise<Multus> {
  const multus = await ensureMultus(version);
  if (!multus.available) throw new Error(`no lab node with multus: ${multus.reason}`);
  return multus;
}

/**
 * `complete`: the delegate's own configuration has the required field, like kube-ovn's socket. `asks-daemon`: it also
 * calls its daemon. multus 4.2.1 to 4.3.0 drops such fields from file-based delegates on DEL, though not on ADD. multus
 * reads it at every call, so there is no reload to wait for.
 */
export function setDelegate(node: LabNode, state: "complete" | "incomplete" | "asks-daemon"): Promise<void> {
  const network = bridgeNetwork();
  const own = {
    ...(state === "incomplete" ? {} : { server_socket: DELEGATE_SOCKET }),
    ...(state === "asks-daemon" ? { asks_daemon: true } : {}),
  };
  const plugins = [{ ...network.plugins[0], type: DELEGATE, ...own }];
  return node.writeFile(CNI_CONF_FILE, JSON.stringify({ ...network, plugins } satisfies CniConflist));
}
