import type { FailureClass } from "../failure-class.ts";

export const ciliumEmptyNetns: FailureClass = {
  id: "cilium-empty-netns",
  code: "B12",
  category: "removal-fails",
  title: "Cilium refuses to remove a pod whose namespace is gone",
  explanation:
    "After a reboot the pod's network namespace no longer exists. This version of cilium takes that for an error instead of for work already done, so the pod stays Terminating.",
  mechanism:
    "DEL runs with an empty namespace path; the plugin tries to open it and fails. containerd's go-cni takes the text for success, CRI-O does not.",
  signatures: () => [
    {
      text: 'plugin type="cilium-cni" failed (delete): opening netns pinned at : open : no such file or directory: stat netns path "": …',
      // CRI-O ends every DEL error with “stat netns path …” once the namespace is gone: that alone proves nothing.
      pattern: /opening netns pinned at/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["cni"],
  inSnapshot: {
    visible: false,
    why: "A namespace that is gone is normal after a reboot; only the plugin's error in the logs makes it this class.",
  },
  versions: "cilium from 1.17.5 up to but not including 1.18, with CRI-O 1.33.1.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "CRI-O 1.32.8, 1.33.4, 1.34.0 and later succeed on the second try.",
      "Otherwise upgrade cilium, or delete the pod by force.",
    ],
    gates: ["The sandbox is dead and its namespace does not exist."],
  },
  byHand: ["Upgrade cilium to 1.18, or CRI-O; until then kubectl delete pod --force."],
  danger: "Endpoint and address may stay in cilium until the agent collects them.",
  links: ["https://github.com/cilium/cilium/issues/40459", "https://github.com/kubernetes/kubernetes/issues/133081"],
};
