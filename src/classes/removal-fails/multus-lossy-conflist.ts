import type { FailureClass } from "../failure-class.ts";
import { cniContext } from "../log-context.ts";

export const multusLossyConflist: FailureClass = {
  id: "multus-lossy-conflist",
  code: "B4",
  title: "Multus strips the delegate's configuration",
  explanation:
    "This version of multus forgets the plugin's own settings when it reads a configuration list from a file. Creating works, removing gets a stripped configuration and the plugin refuses it: kube-ovn misses its socket, calico its kubeconfig.",
  mechanism:
    "LoadDelegateNetConfFromConfList re-marshals only the fields it knows. ADD uses the full bytes, DEL the stripped ones. Not an effect of a missing cache.",
  signatures: () => [
    {
      text: 'plugin type="kube-ovn" failed (delete): Invalid Configuration; server_socket is required in cni.conf, <dump>',
      pattern: /server_socket is required in cni\.conf/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable (from a plugin's DEL)",
      pattern: /no configuration has been provided, try setting kubernetes_master/,
      within: cniContext,
      level: "cause",
      confidence: 0.85,
    },
  ],
  inSnapshot: {
    visible: false,
    why: "On the node it looks like B3 and is found and healed as that; only the plugin's words in the logs tell the two apart.",
  },
  versions: "multus v4.2.1 to v4.3.0; fixed on master in July 2026.",
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Give multus a cache file it cannot parse, so that DEL returns success without calling the delegates.",
      "Stop and remove the sandbox over CRI, then take the file away again.",
      "Sweep what the delegates had allocated, and tell the operator to change the multus version.",
    ],
    gates: [
      "The sandbox is dead: NotReady, no container running, no task, no shim.",
      "Removal fails with exactly this refusal.",
    ],
  },
  byHand: [
    "Install a multus without this defect, or write the delegate inline instead of pointing at a file.",
    "Delete the stuck pods by force, then sweep the addresses.",
  ],
  danger: "Every pod that is deleted leaks until multus is changed: sweeping is a stop-gap.",
  links: [
    "https://github.com/kubeovn/kube-ovn/issues/5448",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1449",
    "https://github.com/k8snetworkplumbingwg/multus-cni/pull/1521",
    "https://github.com/openshift/multus-cni/pull/336",
  ],
};
