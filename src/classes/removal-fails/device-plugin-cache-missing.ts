import type { FailureClass } from "../failure-class.ts";

export const devicePluginCacheMissing: FailureClass = {
  id: "device-plugin-cache-missing",
  code: "B15",
  category: "removal-fails",
  title: "A device plugin lost its own notes",
  explanation:
    "The SR-IOV (or a spidernet) plugin keeps a private file for each interface and refuses to remove the pod when that file is gone, as after a reboot. Nothing is left to undo, but the plugin returns an error instead of success.",
  mechanism:
    "The plugin reads <id>-<interface> from its own directory on DEL and returns the read error, against the CNI rule that DEL of something absent succeeds.",
  signatures: () => [
    {
      text: "error reading cached NetConf in /var/lib/cni/sriov with name <id>-<interface>",
      pattern: /error reading cached ne/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "failed to del rule table 500: no such file or directory",
      pattern: /failed to del rule table \d{1,6}/,
      level: "cause",
      confidence: 0.9,
    },
  ],
  logFragments: ["network", "cni", "rule table"],
  inSnapshot: {
    visible: false,
    why: "The plugin's private directory is not read; its error in the logs names the missing file.",
  },
  versions: "Older sriov-cni and ib-sriov-cni, and spidernet's plugins.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Delete the pod by force, then stop and remove the sandbox.",
      "Check that the virtual function is back in the host's namespace.",
    ],
    gates: ["The sandbox is dead.", "The virtual function serves no other pod."],
  },
  byHand: [
    "Upgrade the plugin. Until then kubectl delete pod --force, then crictl rmp <id>.",
    "ip link on the host: the VF must be there again.",
  ],
  danger: "The virtual function may already serve another pod: check before resetting it.",
  links: [
    "https://github.com/k8snetworkplumbingwg/sriov-cni/issues/178",
    "https://github.com/k8snetworkplumbingwg/sriov-cni/issues/271",
    "https://github.com/spidernet-io/cni-plugins/issues/47",
    "https://github.com/openshift/sriov-cni/pull/58",
  ],
};
