import type { FailureClass } from "../failure-class.ts";

export const ipamRecordMissing: FailureClass = {
  id: "ipam-record-missing",
  code: "B16",
  category: "removal-fails",
  title: "The plugin fails to free what is already free",
  explanation:
    "The pod's address or port was given back earlier, and the plugin treats “there is nothing to free” as an error. The removal loops although nothing is left to remove.",
  mechanism:
    "A failed ADD had already undone its own work. DEL then finds no reservation and errors, against the CNI rule. The text holds no “not found”, so go-cni does not take it for success either.",
  signatures: () => [
    {
      text: "Error deallocating IP: Did not find reserved IP for container <id>",
      pattern: /did not find reserved ip for container|error deallocating ip/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "Failed to obtain OVS port for given connection: failed to find object from table Port",
      pattern: /failed to obtain ovs port for given connection|failed to find object from table port/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["network", "reserve", "ovs port", "deallocating", "reserved ip", "table port"],
  inSnapshot: {
    visible: false,
    why: "The reservation lives in the plugin's own store; its error in the logs is the proof.",
  },
  versions: "Old whereabouts, and ovs-cni of 2021 to 2023.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Delete the pod by force.",
      "With multus: move its cache for this id away as well.",
      "Stop and remove the sandbox, then sweep the other networks of the pod.",
    ],
    gates: ["The sandbox is dead."],
  },
  byHand: ["Upgrade the plugin. Until then kubectl delete pod --force, then crictl rmp <id>."],
  danger: "DEL does not reach the other networks of the pod either; their addresses must be released.",
  links: [
    "https://github.com/k8snetworkplumbingwg/whereabouts/pull/44",
    "https://github.com/k8snetworkplumbingwg/ovs-cni/issues/159",
    "https://github.com/k8snetworkplumbingwg/ovs-cni/issues/276",
  ],
};
