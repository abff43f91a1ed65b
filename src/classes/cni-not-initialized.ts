import type { Candidate } from "../evidence/candidates.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import { heldUpInWords, incompleteSandboxes } from "../evidence/sandbox-creations.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { CniFacts } from "../node/types/cni.ts";
import type { ClassDefinition } from "./failure-class.ts";

/** Every containerd logs this once when it starts, before the network add-on has written its file. */
const atStart = /failed to load cni during init/;

export const cniNotInitialized: ClassDefinition = {
  id: "cni-not-initialized",
  code: "B6",
  sharedCause: true,
  title: "No usable CNI configuration",
  explanation:
    "The runtime has no network configuration it could use: the network add-on is not installed, not started yet, was removed, or the runtime missed that its file appeared. Without it sandboxes can neither be made nor, on older runtimes, be removed.",
  mechanism:
    "The runtime loads the first file of its CNI directory and watches it. A file moved into place raises no write event and stays unseen; a directory deleted and made again loses the watch (up to 2.0 silently, from 2.1 the CRI service exits).",
  signatures: () => [
    {
      text: "cni plugin not initialized / cni config uninitialized / cni config not initialized",
      pattern: /cni (?:plugin|config) (?:is )?(?:not |un)initialized/,
      unless: atStart,
      confidence: 0.9,
    },
    {
      text: "cni config load failed: no network config found in /etc/cni/net.d",
      pattern:
        /cni config load failed|no (?:valid )?network configs? found in \S{0,120}(?:cni|net\.d)|no networks found in \S{0,80}\/net\.d|failed to load cni config/,
      unless: new RegExp(`${atStart.source}|getcniconfig|failed getting the delegate`),
      confidence: 0.85,
    },
    {
      text: "NetworkReady=false reason:NetworkPluginNotReady",
      pattern: /networkready=false|networkpluginnotready|network plugin is not ready/,
      confidence: 0.8,
      decides:
        "The message behind the reason: “cni plugin not initialized” or “no CNI configuration” is this class; a plugin's own error, as of its status check, has its own cause. A node that booted a minute ago has this condition as well.",
    },
    {
      text: "no CNI configuration file in /etc/cni/net.d/. Has your network provider started?",
      pattern: /no cni configuration file in/,
      confidence: 0.9,
    },
    {
      text: "failed to reload cni configuration after receiving fs change event / cni conf dir is removed, stop watching",
      pattern: /failed to reload cni configuration|cni (?:network )?conf (?:dir|monitor|sync)/,
      confidence: 0.8,
    },
  ],
  logFragments: ["cni", "plugin"],
  inSnapshot: {
    conclusive: true,
    how: "CRI status reports the network as not ready, and the CNI directory holds no configuration, or holds one the runtime does not see.",
  },
  versions: {
    since: "every release",
    until: "open",
    ends: "No upgrade ends the missing configuration. From containerd 1.6.37, 1.7.23 and 2.0 on a sandbox whose ADD never completed can be removed without it.",
    note: "Ordinary for the minute between the start of the runtime and that of the network add-on.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "A configuration exists but the runtime reports none: rewrite it in place so that the watch sees it.",
      "None exists: bring the network add-on up on this node.",
      "Then stop and remove what is left over.",
    ],
    gates: ["The content written is byte for byte the content that was there."],
  },
  byHand: [
    "ls /etc/cni/net.d (on k3s below /var/lib/rancher/k3s/agent/etc/cni/net.d) and check the network add-on's pod.",
    "If the file is there: cp it onto itself (cat f > f.new; cat f.new > f), or restart the runtime.",
  ],
  danger:
    "A temporary loopback-only configuration lets removals pass, but every pod that starts meanwhile has no network.",
  links: [
    "containerd/containerd#8774",
    "containerd/containerd#6565",
    "containerd/containerd#6490",
    "containerd/containerd#11209",
    "containerd/containerd#11715",
    "kubernetes-sigs/cri-tools#1687",
    "cilium/cilium#22053",
    "rancher/rke2#3749",
  ],
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  const { cri, cni } = view.snapshot;
  const network = valueOr(cri, undefined)?.conditions.find((condition) => condition.type === "NetworkReady");
  if (network === undefined || network.status) return [];
  const evidence: Evidence[] = [
    { source: "cri", fact: `NetworkReady is false: ${network.reason} ${network.message}`.trim() },
  ];
  if (cni.conf.status === "read") {
    evidence.push({
      source: "cni",
      fact: `${cni.conf.value.file} is there, so the runtime missed it: rewrite it in place`,
    });
  } else {
    evidence.push({ source: "cni", fact: cni.conf.status === "absent" ? cni.conf.reason : cni.conf.error.message });
  }
  const halfMade = incompleteSandboxes(candidates, view);
  return [
    {
      severity: "critical",
      steps: stepsFor(cni.conf),
      subject: { type: "node", name: "NetworkReady" },
      summary: "the runtime has loaded no pod network, so nothing can be set up or torn down",
      evidence,
      blocks: [
        "every new pod and every removal on this node that needs a pod network",
        ...halfMade.map(({ sandbox }) => heldUpInWords(sandbox)),
      ],
      explains: halfMade.map(({ sandbox }) => sandbox.id),
    },
  ];
}

function stepsFor(conf: CniFacts["conf"]): readonly string[] {
  const last = "Then stop and remove what is left over: unghost heal.";
  switch (conf.status) {
    case "read": {
      const { file } = conf.value;
      return [
        `Rewrite the file in place so that the runtime sees it: cp ${file} /tmp/conf && cat /tmp/conf > ${file}`,
        last,
      ];
    }
    case "failed":
      return [`Repair the configuration: ${conf.error.message}.`, last];
    case "absent":
      return ["Bring the network add-on up on this node: its pod writes the configuration, and none is there.", last];
  }
}
