import type { FailureClass } from "../failure-class.ts";

export const isuladNameConflict: FailureClass = {
  id: "isulad-name-conflict",
  code: "O5",
  category: "other-runtime",
  title: "iSulad: the sandbox name is in use",
  explanation:
    "iSulad still has a sandbox of this name from before a power cut and refuses a second one. The kubelet asks for the same attempt because it does not see, or misjudges, the first.",
  mechanism: "iSulad keeps names across restarts; static pods keep their uid and so their name.",
  signatures: () => [
    {
      text: 'Conflict. The name "k8s_POD_…" is already in use by sandbox <id>. You have to remove that sandbox to be able to reuse that name.',
      pattern:
        /conflict\. the name \S{1,400} is already in use by|is already in use by sandbox|remove that sandbox to be able to reuse that name/,
      level: "cause",
      confidence: 0.85,
      decides: "The runtime is iSulad: this class. Another runtime and a kubelet with EventedPLEG: A9.",
    },
  ],
  logFragments: ["sandbox", "etcd"],
  inSnapshot: {
    visible: false,
    why: "unghost has not been tried on iSulad; what its CRI shows is read, but no finding is made.",
  },
  versions: "iSulad (openEuler).",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the dead sandbox that holds the name over CRI."],
    gates: ["The sandbox is dead: NotReady, no container running."],
  },
  byHand: ["crictl pods --no-trunc: crictl rmp the holder if it is NotReady; otherwise restart the kubelet only."],
  danger: "For static pods the holder may be the live API server or etcd.",
  links: ["https://github.com/kubernetes/kubernetes/issues/126514"],
};
