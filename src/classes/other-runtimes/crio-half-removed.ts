import type { FailureClass } from "../failure-class.ts";

export const crioHalfRemoved: FailureClass = {
  id: "crio-half-removed",
  code: "O6",
  category: "other-runtime",
  title: "CRI-O: half removed, and no removal gets past that",
  explanation:
    "A sandbox was removed without being stopped before, and its network could not be taken down. CRI-O had deleted its containers by then; every later removal tries to delete them again, does not find them, and fails. The sandbox stays in the list until CRI-O is restarted, also when the network could be taken down again.",
  mechanism:
    "RemovePodSandbox deletes the containers, the sandbox's own included, takes their ids out of the index, and runs DEL last. When DEL fails the sandbox is kept, and the next removal fails on the id of its own container, which the index no longer has.",
  signatures: () => [
    {
      text: "failed to delete container k8s_POD_<pod>_<namespace>_<uid>_<n> in pod sandbox <id> from index: no such id: '<id>'",
      pattern: /failed to delete (?:infra )?container \S{1,400} in pod sandbox \S{1,80} from index: no such id/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["sandbox"],
  inSnapshot: {
    visible: false,
    why: "CRI-O lists it like any sandbox that is NotReady; what its index lacks shows only in the answer to a removal.",
  },
  versions: "CRI-O from 1.22 on, and late releases of 1.20 and 1.21.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Repair what DEL fails on.", "Restart crio."],
    gates: ["DEL works again: other pods of the node are stopped without an error."],
  },
  byHand: [
    "Find out why DEL failed: the first removal's message in crio's log, which begins with “stop pod network”; unghost explain shows what it means.",
    "When DEL works again: crictl stopp <id>, with which most releases try DEL again, whatever they answer; then systemctl restart crio.",
    "unghost scan shows what the sandbox has left behind.",
  ],
  danger:
    "The restart makes CRI-O forget the sandbox without another DEL: before the cause is repaired it leaves addresses and rules behind. Never crictl rmp what crictl stopp could not stop.",
  links: ["https://github.com/cri-o/cri-o/pull/3164", "https://github.com/cri-o/cri-o/pull/291"],
};
