import { symlink } from "node:fs/promises";
import { bridgeNetwork, CNI_BIN_DIR, CNI_CONF_FILE, type CniConflist } from "./cni-config.ts";
import { waitForNetwork } from "./cni-network.ts";
import type { LabNode } from "./node.ts";
import { STUB_KUBECONFIG, startStubApi } from "./stub-api.ts";
import { ensureMultus } from "./tools.ts";

export const MULTUS_CACHE_DIR = "/var/lib/cni/multus";
const MULTUS_CONF_FILE = "/etc/cni/net.d/00-multus.conf";
const DELEGATE = "lab-ovn";

/**
 * A delegate that wants a field of its own in its configuration, as kube-ovn wants its socket, and otherwise is a
 * bridge. multus 4.2.1 to 4.3.0 drops such fields from file-based delegates on DEL, though not on ADD.
 */
const DELEGATE_SCRIPT = `#!/bin/sh
[ "$CNI_COMMAND" != VERSION ] || exec "${CNI_BIN_DIR}/bridge"
conf="$(cat)"
case "$conf" in
*server_socket*)
  printf '%s' "$conf" | "${CNI_BIN_DIR}/bridge"
  exit "$?"
  ;;
esac
printf '{"code":100,"msg":"Invalid Configuration; server_socket is required in cni.conf"}'
exit 1
`;

/** Thin multus in front of the node's network, with the API server it asks about pods. Start that again after a boot. */
export async function useMultus(node: LabNode): Promise<void> {
  const multus = await ensureMultus();
  if (!multus.available) throw new Error(`no lab node with multus: ${multus.reason}`);
  await symlink(multus.binary, node.path(`${CNI_BIN_DIR}/multus`));
  await node.writeFile(`${CNI_BIN_DIR}/${DELEGATE}`, DELEGATE_SCRIPT, 0o755);
  await startStubApi(node);
  await setDelegate(node, "complete");
  const conf = JSON.stringify({
    cniVersion: "0.4.0",
    name: "multus-cni-network",
    type: "multus",
    kubeconfig: STUB_KUBECONFIG,
    clusterNetwork: CNI_CONF_FILE,
    cniDir: MULTUS_CACHE_DIR,
    logFile: "/var/log/multus.log",
    logLevel: "debug",
  });
  await node.writeFile(MULTUS_CONF_FILE, conf);
  await waitForNetwork(node, "multus-cni-network");
}

/** Whether the delegate's own configuration has the field it wants. Read by multus at every call: no reload to wait for. */
export function setDelegate(node: LabNode, state: "complete" | "incomplete"): Promise<void> {
  const network = bridgeNetwork();
  const own = state === "complete" ? { server_socket: "/run/openvswitch/kube-ovn-daemon.sock" } : {};
  const plugins = [{ ...network.plugins[0], type: DELEGATE, ...own }];
  return node.writeFile(CNI_CONF_FILE, JSON.stringify({ ...network, plugins } satisfies CniConflist));
}
