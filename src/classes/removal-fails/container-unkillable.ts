import { runtimeUnreachable } from "../../evidence/log-context.ts";
import type { FailureClass } from "../failure-class.ts";

export const containerUnkillable: FailureClass = {
  id: "container-unkillable",
  code: "B20",
  category: "removal-fails",
  title: "A container that does not die",
  explanation:
    "The runtime sent the kill and waits for the container's end, which never comes: the process hangs in the kernel, is a zombie or frozen, or its end was missed. The pod stays Terminating.",
  mechanism:
    "StopContainer waits for an exit event. An uninterruptible process, a frozen cgroup or a lost event leaves it waiting until the deadline, every time.",
  signatures: () => [
    {
      text: 'an error occurs during waiting for container "<id>" to be killed: wait container "<id>": context deadline exceeded',
      pattern:
        /an error occurs during waiting for container \S{1,90} to be (?:killed|stopped)|wait container \S{1,90}: context (?:deadline|cancel)/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'failed to stop sandbox container "<id>" in "SANDBOX_READY" state: wait sandbox container …',
      pattern:
        /failed to stop sandbox container \S{1,90} in \S{1,30} state: (?:wait|failed to kill|context)|wait sandbox container \S/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "tried to kill container, but did not receive an exit event",
      pattern: /did not receive an exit event/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "StopContainer from runtime service failed … DeadlineExceeded / KillContainerError: … DeadlineExceeded",
      pattern:
        /(?:stopcontainer|killcontainer|kill container failed|container termination failed)[^]{0,300}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.6,
      decides:
        "The state of the container's first process: gone (the exit was missed), D (kernel or storage), T or frozen cgroup.",
    },
    {
      text: 'failed to "KillPodSandbox" … DeadlineExceeded',
      pattern: /(?:killpodsandbox|stoppodsandbox)[^]{0,400}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.25,
      decides: "A container of the sandbox is still running, or its pause process does not end.",
    },
    {
      text: 'failed to kill container "<id>": … context deadline exceeded',
      pattern: /failed to kill (?:container|sandbox container|task)[^]{0,160}?(?:deadline exceeded|context canceled)/,
      level: "cause",
      confidence: 0.8,
    },
  ],
  logFragments: [
    "kill container",
    "sandbox",
    "to be killed",
    "stopcontainer",
    "killcontainer",
    "wait container",
    "container termination",
    "kill task",
  ],
  inSnapshot: {
    visible: false,
    why: "Not detected yet. It would show as a running container whose process is gone or in uninterruptible sleep.",
  },
  versions: "containerd 1.1 to 2.x.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Process gone, task still “running”: restart the runtime once, under its gates.",
      "Process in uninterruptible sleep: find the storage or reboot.",
      "Frozen cgroup: thaw it.",
    ],
    gates: ["No duplicate names among the records before a restart.", "Enough free disk."],
  },
  byHand: ["Find the pid (crictl inspect), check its state in /proc/<pid>/status, then restart the runtime or reboot."],
  danger: "Never remove the record while the process lives: it would go on writing to its volume unseen.",
  links: [
    "https://github.com/containerd/containerd/issues/10755",
    "https://github.com/containerd/containerd/issues/11133",
    "https://github.com/containerd/containerd/issues/11984",
    "https://github.com/containerd/containerd/issues/8102",
    "https://github.com/siderolabs/talos/issues/9454",
    "https://github.com/moby/moby/issues/37627",
  ],
};
