import { valueOr } from "../host/source.ts";
import type { NodeView } from "./view.ts";

/** Plugins that keep the addresses of pods in the API, and where. */
const STORES: Readonly<Record<string, string>> = {
  "kube-ovn": "ips.kubeovn.io",
  whereabouts: "ippools.whereabouts.cni.cncf.io",
  spiderpool: "spiderippools.spiderpool.spidernet.io",
  "calico-ipam": "ipamblocks.crd.projectcalico.org",
  "cilium-cni": "ciliumnodes.cilium.io",
};

/**
 * Addresses that may have leaked unseen: the shim of thick multus answers DEL with success even if its delegate was never
 * called, and what such a delegate holds is not on the node.
 */
export function unreadAddressStores({ snapshot: { cni } }: NodeView): readonly string[] {
  if (valueOr(cni.conf, undefined)?.multus?.thick !== true) return [];
  return (cni.addressPlugins ?? []).flatMap((plugin) => {
    const store = Object.hasOwn(STORES, plugin) ? STORES[plugin] : undefined;
    if (store === undefined) return [];
    return [
      `whether ${plugin} still holds addresses of deleted pods: multus answers DEL with success even if it did not reach ${plugin}, whose addresses are in the API. Compare: kubectl get ${store} --all-namespaces`,
    ];
  });
}
