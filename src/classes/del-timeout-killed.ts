import type { Detected } from "../evidence/finding.ts";
import { oldestOfEachSandbox } from "../evidence/locks.ts";
import { hungProcess } from "../evidence/step.ts";
import { recordsComeFirst } from "../evidence/unknown-ids.ts";
import { isRecorded, type NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import { cniContext, runtimeUnreachable } from "../logs/context.ts";
import type { PluginOrigin, PluginProcess } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

/** The runtime answered, and not about the network: a deadline in the text is a container's. */
const containerFailed = /code = unknown desc = failed to (?:stop|kill) container/;

export const delTimeoutKilled: ClassDefinition = {
  id: "del-timeout-killed",
  code: "B14",
  title: "CNI DEL is too slow and gets killed",
  explanation:
    "Taking the pod's network down takes longer than the caller waits, so the plugin is killed half way and everything starts again from the beginning. Something on the node is slow: a lock, the API, an overrun daemon. Shorter deadlines make it worse.",
  mechanism:
    "The kubelet waits two minutes for StopPodSandbox, crictl two seconds by default. When the deadline passes libcni kills the plugin, which dies without a message.",
  signatures: () => [
    {
      text: "netplugin failed with no error message: signal: killed | context deadline exceeded",
      pattern: /netplugin failed with no error message: (?:signal: killed|context (?:deadline exceeded|canceled))/,
      unless: /\( ?a ?d ?d ?\)(?![^]{0,1500}(?:\(delete\)|clean ?up|tear ?down|destroy))/,
      during: "removing",
      confidence: 0.9,
    },
    {
      text: "Calico CNI timed out deleting device in netns <path>",
      pattern: /timed out deleting device in netns/,
      during: "removing",
      confidence: 0.9,
    },
    {
      text: 'netplugin failed but error parsing its diagnostic message "": unexpected end of JSON input (older libcni)',
      pattern: /netplugin failed but error parsing its diagnostic message ?: unexpected end of json input/,
      during: "removing",
      confidence: 0.6,
      decides:
        "The plugin ended without a message: killed by the deadline, or crashed. A Go stack in the runtime's log means it crashed.",
    },
    {
      text: "netplugin failed with no error message",
      pattern: /netplugin failed with no error message(?!:)/,
      // Cut off before the cause; or the creation failed in the same way, for a reason that is not in the text.
      unless: /(?:…|\.{3}|>)[^a-z]{0,8}$|failed to set ?up pod|failed \(add\)/,
      level: "wrapper",
      during: "removing",
      confidence: 0.5,
      decides: "What follows the text: “signal: killed” is a deadline; an exit status is the plugin's own failure.",
    },
    {
      text: "… failed (delete): … context deadline exceeded",
      pattern:
        /(?:failed \(delete\): [^]{0,300}?|deleting network: |tear ?down pod \S{1,300} network: |from (?:cni )?network \S{1,120}: )(?:context deadline exceeded|signal: killed)/,
      within: cniContext,
      level: "wrapper",
      confidence: 0.6,
      decides: "What the plugin was waiting for: a lock (B17), the API (B9) or a daemon (B5, B13).",
    },
    {
      text: 'failed to "KillPodSandbox" … DeadlineExceeded desc = context deadline exceeded',
      pattern:
        /(?:killpodsandbox|stoppodsandbox|removepodsandbox|stopping the pod sandbox|removing the pod sandbox|stop pod sandbox|failed to stop sandbox)[^]{0,400}?(?:deadline ?exceeded|context canceled)/,
      unless: new RegExp(`${runtimeUnreachable.source}|${containerFailed.source}`),
      level: "symptom",
      confidence: 0.5,
      decides:
        "What the runtime waits for: a plugin process older than a minute (this class, or B5 with multus), or a container that does not die (B20).",
    },
  ],
  logFragments: ["plugin", "sandbox", "cni"],
  inSnapshot:
    "A plugin process of the runtime with CNI_COMMAND=DEL for a sandbox of the runtime, older than the in-flight grace.",
  versions: {
    since: "every release",
    until: "open",
    ends: "No upgrade: a network plugin whose DEL ends within a minute.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "End the plugin process that hangs; the kubelet's next try starts a fresh one.",
      "If it stays slow, name the reason: lock (B17), multus (B5), kernel (A7).",
    ],
    gates: [
      "The process carries CNI_COMMAND=DEL and the full id of a sandbox that the runtime lists or has a record of, and is older than the in-flight grace.",
      "It runs as root, in no container, and descends from the runtime or runs a program of the CNI directories; below thick multus, it descends from the daemon that listens on the node's multus socket.",
      "It is not in uninterruptible sleep.",
    ],
  },
  byHand: [
    "Find what is slow: ps for old plugin processes, the iptables lock, the API.",
    "crictl --timeout 130s stopp <id>, one after the other.",
  ],
  danger: "Killing DEL again and again leaves half-removed state behind.",
  links: [
    "projectcalico/calico#7647",
    "projectcalico/calico#4722",
    "siderolabs/talos#13411",
    "containerd/containerd#5438",
  ],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const plugins = valueOr(view.snapshot.processes, undefined)?.plugins ?? [];
  return oldestOfEachSandbox(plugins, "DEL")
    .filter((plugin) => isOfOurSandbox(plugin, view))
    .filter((plugin) => plugin.ageSeconds * 1000 >= view.policy.inflightGraceMs)
    .map((plugin): Detected => {
      const pod = view.about(plugin.sandboxId).sandbox?.pod;
      return {
        severity: "critical",
        subject: { type: "process", pid: plugin.pid, sandboxId: plugin.sandboxId, pod },
        summary: `a network plugin has been removing this sandbox's network for ${durationInWords(plugin.ageSeconds)} and does not end; kubelet's calls time out against it`,
        evidence: [
          {
            source: "processes",
            fact: `pid ${plugin.pid} (${plugin.command}) carries CNI_COMMAND=DEL for this sandbox since ${durationInWords(plugin.ageSeconds)}`,
          },
          { source: "processes", fact: `pid ${plugin.pid} is root's and ${ORIGIN_WORDS[plugin.origin]}` },
        ],
        blocks: pod ? [`pod ${pod.namespace}/${pod.name} cannot be torn down`] : [],
        cure: [{ kind: "end-process", ...hungProcess(plugin) }],
      };
    });
}

const ORIGIN_WORDS = {
  runtime: "was started by the runtime",
  "multus-daemon": "was started by the multus daemon",
  "cni-directory": "runs a program of the CNI directories",
} satisfies Record<PluginOrigin, string>;

/**
 * The runtime lists the sandbox or has a record of it. A creation in rollback may have neither if records are written
 * last (containerd 1.6); then the runtime itself must have started the plugin.
 */
function isOfOurSandbox({ sandboxId, origin }: PluginProcess, view: NodeView): boolean {
  const about = view.about(sandboxId);
  if (about.sandbox !== undefined || isRecorded(about)) return true;
  return origin === "runtime" && !recordsComeFirst(view);
}
