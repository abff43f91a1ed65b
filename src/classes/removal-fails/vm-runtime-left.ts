import type { FailureClass } from "../failure-class.ts";

export const vmRuntimeLeft: FailureClass = {
  id: "vm-runtime-left",
  code: "B24",
  category: "removal-fails",
  title: "A virtual machine outlived its sandbox",
  explanation:
    "With kata or gVisor each pod is its own small machine. Its processes survived although the runtime has already forgotten the pod, and a new pod of the same name cannot be made beside them.",
  mechanism:
    "The runtime's create is not idempotent across a containerd restart; the machine's processes and its directory below /run/vc or the runsc root stay.",
  signatures: () => [
    {
      text: "/run/vc/…/<id>: file exists | device or resource busy",
      pattern:
        /\/(?:run|lib)\/vc\/\S{1,200}:? (?:file exists|device or resource busy|directory not empty|already exists)/,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: "kata: sandbox <id> already exists / runsc: container with ID <id> already exists",
      pattern: /(?:kata|runsc|gvisor|virtcontainers)[^]{0,300}?already exists?\b/,
      within: /sandbox|container/,
      level: "cause",
      confidence: 0.7,
    },
  ],
  logFragments: ["kata", "resource busy", "runsc", "/vc/", "gvisor"],
  inSnapshot: {
    visible: false,
    why: "Processes of virtual machines are not distinguished from others yet.",
  },
  versions: "Reported for kata 2.4; possible with any VM-like runtime.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Name the processes and the directory that belong to the forgotten sandbox."],
    gates: ["The id is in neither the CRI list nor the runtime's records."],
  },
  byHand: ["End the processes that carry the sandbox id, then clean its directory below /run/vc."],
  danger: "The machine may still hold volumes and write to them.",
  links: [
    "https://github.com/kata-containers/kata-containers/issues/5246",
    "https://github.com/kata-containers/kata-containers/issues/1945",
    "https://github.com/google/gvisor/issues/9011",
    "https://github.com/google/gvisor/issues/9834",
    "https://github.com/containerd/containerd/issues/10421",
  ],
};
