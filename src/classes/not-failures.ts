import type { ClassDefinition } from "./failure-class.ts";

export const retainedNotready: ClassDefinition = {
  id: "retained-notready",
  code: "N1",
  title: "NotReady, and kept on purpose",
  explanation:
    "After a reboot every pod shows an old NotReady sandbox beside the Ready one, and a finished pod keeps its last. The kubelet keeps them for their logs. Nothing is wrong.",
  mechanism:
    "The kubelet's garbage collection keeps the newest sandbox of every existing pod and any sandbox that still has containers.",
  inSnapshot:
    "A NotReady sandbox of a finished pod, or one beside a Ready sandbox of the same pod with a higher attempt.",
  versions: { since: "every release", until: "open", ends: "Nothing ends it: it is no failure." },
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Leave it alone."],
  danger: "Removing it heals nothing and destroys kubectl logs and kubectl logs --previous.",
  links: ["containerd/containerd#10865", "k3s-io/k3s#11139"],
  adopts: "all-dead",
};

export const secondIdempotentDel: ClassDefinition = {
  id: "second-idempotent-del",
  code: "N2",
  title: "Multus finds nothing left to delete",
  explanation:
    "The runtime calls the teardown twice by design. The second time multus finds that its notes are already gone and logs it. After a first teardown that succeeded this means nothing.",
  mechanism: "StopPodSandbox and RemovePodSandbox both run DEL; multus removed its cache on the first.",
  signatures: () => [
    {
      text: "Multus: failed to get the cached delegates file: open /var/lib/cni/multus/<id>: no such file or directory, cannot properly delete",
      pattern: /failed to get the cached delegates file(?:: (?:open|stat|read|failed)| (?:…|\.{3}) )/,
      unless: /cached delegates file: <n/,
      confidence: 0.7,
      decides:
        "A successful teardown of the same id just before: harmless. None: the notes were lost, and the pod's addresses leaked (C5).",
    },
  ],
  logFragments: ["multus"],
  inSnapshot: "It leaves no trace but the line.",
  versions: { since: "every release of multus", until: "open", ends: "Nothing ends it: it is no failure." },
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Search for a successful DEL of the same id just before; then ignore the line."],
  danger: "None.",
  links: ["k8snetworkplumbingwg/multus-cni#1446"],
};

export const inflightClearing: ClassDefinition = {
  id: "inflight-clearing",
  code: "N3",
  title: "A name lock that clears without intervention",
  explanation:
    "The same message as A1 or A2, but the first request was only slow and has ended within ten minutes. The kubelet's next try succeeds.",
  mechanism:
    "A creation under load takes longer than the kubelet waits, then finishes or rolls back in an orderly way.",
  inSnapshot: "It is over by the time of a scan; only time separates it from A1 and A2.",
  versions: { since: "every release", until: "open", ends: "Nothing ends it: it is no failure." },
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Wait ten minutes before doing anything."],
  danger: "Acting too early turns a slow start into a failed one.",
  links: ["containerd/containerd#4604"],
};

export const sandboxChangedAlone: ClassDefinition = {
  id: "sandbox-changed-alone",
  code: "N4",
  title: "“Pod sandbox changed”, alone",
  explanation:
    "The kubelet noticed that the pod's sandbox is gone or different and makes a new one. After a reboot every pod logs this once. Only when it repeats for minutes is there a cause, and another line has it.",
  mechanism: "The kubelet compares the newest sandbox with what the pod needs and announces the replacement.",
  inSnapshot: "It is an announcement, not a state.",
  versions: { since: "every release", until: "open", ends: "Nothing ends it: it is no failure." },
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["If it repeats, search for KillPodSandbox or CreatePodSandbox errors of the same pod in the kubelet's log."],
  danger: "None.",
  links: ["kubernetes/kubernetes#56996"],
};
