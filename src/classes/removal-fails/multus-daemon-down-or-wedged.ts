import type { FailureClass } from "../failure-class.ts";
import { runtimeUnreachable } from "../log-context.ts";

export const multusDaemonDownOrWedged: FailureClass = {
  id: "multus-daemon-down-or-wedged",
  code: "B5",
  title: "The multus daemon is down or overrun",
  explanation:
    "Every network call on this node goes through the multus daemon, and the daemon does not answer: it is out of memory, cannot be installed because its own binary is in use, or drowns in retries. Pods neither start nor stop while the node stays Ready.",
  mechanism:
    "00-multus.conf stays first in the directory while the daemon cannot start. Each waiting shim keeps the binary busy, so the init container's copy fails with “Text file busy”; the stock memory limit of 50 MiB is too small for a node full of retries.",
  signatures: () => [
    {
      text: "CmdAdd (shim): timed out waiting for the condition",
      pattern:
        /cmd(?:add|del|check) \(shim\):[^]{0,200}?(?:timed out waiting|not reachable|connect: connection refused|connect: no such file)/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "CheckAPIReadyNow: Daemon not reachable over socketfile: …",
      pattern: /checkapireadynow|daemon not reachable over socket ?file/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "cp: cannot create regular file '/host/opt/cni/bin/multus-shim': Text file busy",
      pattern: /multus-shim\S{0,4}:? text file busy/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "dial unix /run/multus/multus.sock: connect: …",
      pattern: /multus\.sock: connect/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "Memory cgroup out of memory: Killed process <pid> (multus-daemon)",
      pattern:
        /(?:killed process \d{1,8}|oom-kill|out of memory)[^]{0,200}?multus-daemon|kube-multus\S{0,60}[^]{0,120}?oomkilled/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: 'failed to "KillPodSandbox" … DeadlineExceeded, on a node with multus',
      pattern: /(?:killpodsandbox|stoppodsandbox)[^]{0,400}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.3,
      decides: "The multus pod of this node is not Ready, or many multus-shim processes wait.",
    },
    {
      text: "[error] failed to sync pod informer cache (the daemon's own log)",
      pattern: /failed to sync pod informer cache/,
      level: "cause",
      confidence: 0.75,
    },
  ],
  inSnapshot: {
    visible: false,
    why: "Whether the daemon is well is not looked at; old multus-shim processes are reported as the plugin that hangs (A1).",
  },
  versions: "multus thick 4.0 and later; “Text file busy” with manifests that install by plain cp.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "End multus-shim processes older than five minutes.",
      "Restart the multus pod of this node; raise its memory limit.",
      "No removals by unghost until the daemon is well: each would feed the storm.",
    ],
    gates: ["The daemon has not been Ready for five minutes after boot.", "The shims are older than five minutes."],
  },
  byHand: [
    "End the multus-shim processes that are older than five minutes, by pid.",
    "Delete the multus pod of this node, raise its memory limit to 200 MiB or more.",
    "As a last resort move 00-multus.conf out of the CNI directory until the node is calm.",
  ],
  danger: "Without the multus configuration new pods start silently without their secondary networks.",
  links: [
    "https://github.com/siderolabs/talos/issues/13411",
    "https://github.com/siderolabs/talos/issues/12463",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1221",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1361",
    "https://github.com/k8snetworkplumbingwg/multus-cni/pull/1213",
    "https://github.com/kubeovn/kube-ovn/issues/4470",
    "https://github.com/containerd/containerd/issues/13326",
    "https://github.com/aws/amazon-vpc-cni-k8s/pull/3322",
  ],
};
