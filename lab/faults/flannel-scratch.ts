import { truncate } from "node:fs/promises";
import { bridgeNetwork, CNI_BIN_DIR, type CniConflist } from "../cni-config.ts";
import { useNetwork } from "../cni-network.ts";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

const SCRATCH_DIR = "/var/lib/cni/flannel";

/**
 * A minimal version of the older flannel plugin: it calls bridge, writes its configuration into a scratch file per
 * sandbox, and fails every DEL with an unparsable one.
 */
function flannelPlugin(): string {
  const network = bridgeNetwork();
  const delegate = { cniVersion: network.cniVersion, name: network.name, ...network.plugins[0] };
  return `#!/bin/sh
scratch="${SCRATCH_DIR}/$CNI_CONTAINERID"
case "$CNI_COMMAND" in
ADD)
  mkdir -p ${SCRATCH_DIR}
  printf '%s' '${JSON.stringify(delegate)}' >"$scratch"
  exec "${CNI_BIN_DIR}/bridge" <"$scratch"
  ;;
DEL)
  [ -e "$scratch" ] || exit 0
  if [ ! -s "$scratch" ]; then
    printf '{"code":100,"msg":"failed to parse netconf: unexpected end of JSON input"}'
    exit 1
  fi
  "${CNI_BIN_DIR}/bridge" <"$scratch" && rm "$scratch"
  ;;
VERSION) exec "${CNI_BIN_DIR}/bridge" ;;
esac
`;
}

function flannelNetwork(): CniConflist {
  const { cniVersion, name } = bridgeNetwork();
  return { cniVersion, name, plugins: [{ type: "flannel", delegate: { isDefaultGateway: true } }] };
}

/** Installs the plugin and its network. Pods created from now on have a scratch file. */
export async function useFlannel(node: LabNode): Promise<void> {
  await node.writeFile(`${CNI_BIN_DIR}/flannel`, flannelPlugin(), 0o755);
  await useNetwork(node, flannelNetwork());
}

/** The scratch file is not synced: after a power cut it may be empty. Needs useFlannel() before the pod. */
export async function emptyFlannelScratch(node: LabNode, pod: LabPod): Promise<Injected> {
  const path = `${SCRATCH_DIR}/${pod.sandboxId}`;
  await truncate(node.path(path), 0);
  return { fault: "empty-flannel-scratch", did: `emptied ${path}`, sandboxId: pod.sandboxId, path };
}
