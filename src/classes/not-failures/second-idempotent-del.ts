import type { FailureClass } from "../failure-class.ts";

export const secondIdempotentDel: FailureClass = {
  id: "second-idempotent-del",
  code: "N2",
  category: "not-a-failure",
  title: "Multus finds nothing left to delete",
  explanation:
    "The runtime calls the teardown twice by design. The second time multus finds that its notes are already gone and logs it. After a first teardown that succeeded this means nothing.",
  mechanism: "StopPodSandbox and RemovePodSandbox both run DEL; multus removed its cache on the first.",
  signatures: () => [
    {
      text: "Multus: failed to get the cached delegates file: open /var/lib/cni/multus/<id>: no such file or directory, cannot properly delete",
      pattern: /failed to get the cached delegates file/,
      unless: /cached delegates file: <nil>/,
      level: "cause",
      confidence: 0.7,
      decides:
        "A successful teardown of the same id just before: harmless. None: the notes were lost, and the pod's addresses leaked (C5).",
    },
  ],
  logFragments: ["multus"],
  inSnapshot: { visible: false, why: "It leaves no trace but the line." },
  versions: "multus, all versions.",
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Search for a successful DEL of the same id just before; then ignore the line."],
  danger: "None.",
  links: ["https://github.com/k8snetworkplumbingwg/multus-cni/issues/1446"],
};
