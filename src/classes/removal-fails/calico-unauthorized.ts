import type { FailureClass } from "../failure-class.ts";

export const calicoUnauthorized: FailureClass = {
  id: "calico-unauthorized",
  code: "B8",
  category: "removal-fails",
  sharedCause: true,
  title: "The CNI plugin's API token is stale",
  explanation:
    "The network plugin is not allowed to talk to the API server any more: the token in its kubeconfig has expired or belongs to a service account that was made again. Pods can neither get nor give back their network until calico-node writes a fresh one.",
  mechanism:
    "calico-node renews the token in /etc/cni/net.d/calico-kubeconfig. If it does not run, the clock jumped, or the VM was paused, the plugin presents an old one and the API answers 401.",
  signatures: () => [
    {
      text: 'plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized',
      pattern: /clusterinformation: connection is unauthorized|connection is unauthorized: unauthorized/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "… : Unauthorized, from a CNI plugin",
      pattern: /(?::|\]) unauthorized\b|the server has asked for the client to provide credentials/,
      within: /plugin type=|networkplugin cni|multus|failed \((?:add|delete)\)|clusterinformation/,
      unless: /pull access|failed to authorize|pull image|manifests/,
      level: "cause",
      confidence: 0.75,
    },
  ],
  logFragments: ["plugin", "multus", "unauthorized", "error getting pod"],
  inSnapshot: {
    visible: false,
    why: "Whether a token is still accepted shows only when it is used; the plugin's answer in the logs is the proof.",
  },
  versions: "Reports from 2021 to 2025; any plugin that talks to the API with a token file.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the calico-node pod of this node.",
      "Wait until calico-kubeconfig is newer than before.",
      "Stop and remove what is left over.",
    ],
    gates: ["The kubeconfig is older than the last restart of calico-node."],
  },
  byHand: [
    "Check the clock, then delete the calico-node pod of this node.",
    "Watch the date of /etc/cni/net.d/calico-kubeconfig change; the kubelet does the rest.",
  ],
  danger: "Do not unmount network namespaces to get rid of the pods: address and endpoint leak.",
  links: [
    "https://github.com/projectcalico/calico/issues/4857",
    "https://github.com/projectcalico/calico/issues/5712",
    "https://github.com/projectcalico/calico/issues/9428",
    "https://github.com/projectcalico/calico/issues/9271",
  ],
};
