import type { FailureClass } from "../failure-class.ts";

export const crioNameReserved: FailureClass = {
  id: "crio-name-reserved",
  code: "O1",
  category: "other-runtime",
  title: "CRI-O: the name is reserved by a creation under way",
  explanation:
    "CRI-O is still busy with an earlier request for this pod or container and reports that. Usually the node is overloaded and it passes; newer versions name the stage at which the first request stands. If its own clean-up failed, the name stays until CRI-O is restarted.",
  mechanism:
    "CRI-O reserves the name for the request and keeps it while the request runs. After twenty failed clean-up attempts it stops and never releases it.",
  signatures: () => [
    {
      text: "error reserving pod name k8s_<pod>_<namespace>_<uid>_<n> for id <id>: name is reserved",
      pattern: /error reserving (?:pod|ctr|container) name/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "kubelet may be retrying requests that are timing out in CRI-O due to system load. Currently at stage <s>: …",
      pattern: /kubelet may be retrying requests that are timing out in cri-o/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "Creation of sandbox <n> not yet finished. Currently at stage <s>",
      pattern: /creation of (?:sandbox|container) \S{1,400} not yet finished/,
      level: "cause",
      confidence: 0.85,
    },
  ],
  logFragments: ["reserve", "sandbox", "network", "not yet finished"],
  inSnapshot: { visible: false, why: "CRI-O's reservations are in its memory only; the log names the stage." },
  versions: "All CRI-O releases.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Wait, and check the stage that the message names.", "Stuck after failed clean-ups: restart crio."],
    gates: ["The message has been repeating for more than ten minutes."],
  },
  byHand: ["Reduce the node's load; read the stage in the message. If nothing moves: systemctl restart crio."],
  danger: "A restart during a long creation throws its work away.",
  links: [
    "https://github.com/cri-o/cri-o/issues/7010",
    "https://github.com/cri-o/cri-o/issues/9097",
    "https://github.com/cri-o/cri-o/issues/8884",
    "https://github.com/cri-o/cri-o/issues/8596",
    "https://github.com/cri-o/cri-o/issues/2984",
  ],
};
