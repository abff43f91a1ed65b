import { MULTUS_CONF_FILE, useMultusWith } from "../multus.ts";
import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

/** multus was uninstalled: its kubeconfig is gone, and its configuration and its binary stay. It is still the first. */
export async function removedMultus(node: LabNode): Promise<Injected & { readonly path: string }> {
  await useMultusWith("/etc/cni/net.d/multus.d/multus.kubeconfig", node);
  return { fault: "removed-multus", did: `left ${MULTUS_CONF_FILE} without its kubeconfig`, path: MULTUS_CONF_FILE };
}
