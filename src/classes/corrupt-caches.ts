import type { Candidate } from "../evidence/candidates.ts";
import type { Detected } from "../evidence/finding.ts";
import {
  blockingResults,
  brokenInWords,
  sandboxDetected,
  stepToQuarantine,
  withCorruptFile,
} from "../evidence/sandbox-detected.ts";
import { containerdBehaviour, MULTUS } from "../evidence/versions.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const libcniResultCacheCorrupt: ClassDefinition = {
  id: "libcni-result-cache-corrupt",
  code: "B1",
  title: "Corrupt CNI result cache",
  explanation:
    "A power cut left an empty or half-written file in /var/lib/cni/results. The runtime reads it before it takes the pod's network down, fails, and stops there. The pod stays Terminating or Unknown forever, and crictl rmp --force fails, too, while the file is there.",
  mechanism:
    "libcni writes <network>-<id>-<interface> without fsync or rename, so a crash can leave it empty. With cniVersion 0.4.0 or newer DEL reads it back as the previous result; libcni before 1.2 treats a file it cannot decode as fatal.",
  signatures: () => [
    {
      text: 'failed to get network "<net>" cached result: decoding version from network config: unexpected end of JSON input',
      pattern: /failed to get network \S{1,120} cached(?: result)?: (?:decod|unexpected|invalid|failed to unmarshal)/,
      confidence: 0.95,
    },
    {
      text: "decoding version from network config: unexpected end of JSON input",
      pattern: /decoding version from network config: (?:unexpected end|invalid character)/,
      confidence: 0.85,
    },
    {
      text: 'failed to unmarshal cached network "<net>" config: …',
      pattern: /failed to unmarshal cached network \S{1,120} config/,
      confidence: 0.85,
    },
    {
      text: "-rw------- 1 root root 0 <date> <net>-<id>-eth0 (a listing of /var/lib/cni/results)",
      pattern: /-[rwx-]{9}\S? \d{1,3} \S{1,32} \S{1,32} 0 [^/]{3,40} [\w./-]{1,160}-[0-9a-f]{64}-\w{1,15}\b/,
      confidence: 0.9,
    },
  ],
  logFragments: ["network", "root root"],
  inSnapshot: { conclusive: true, how: "The result file of a NotReady sandbox is empty or is not JSON." },
  versions: {
    since: "containerd 1.6, and CRI-O with libcni 1.1",
    until: "containerd 1.7 and CRI-O 1.30 (libcni 1.1)",
    ends: "Upgrade to containerd 2.0 or CRI-O 1.31, which tolerate a broken result. `unghost keep` prevents the empty file.",
    note: "Single-plugin configurations under multus fail up to libcni 1.3.0.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the corrupt file to quarantine.",
      "Let a live kubelet finish (it does within seconds); otherwise stop the sandbox over CRI.",
      "Check that the address went back to the pool.",
    ],
    gates: [
      "The file is empty or cannot be parsed.",
      "Its sandbox is dead: NotReady, no container running, no task, no shim.",
    ],
  },
  byHand: [
    "find /var/lib/cni/results -size 0",
    "Move the file of the stuck sandbox away (do not delete it yet).",
    "Wait for the kubelet, or crictl stopp <id> && crictl rmp <id>.",
  ],
  danger:
    "Never touch files that can be parsed, least of all those of running pods. Without the previous result some plugin chains free less than they should.",
  links: [
    "containerd/containerd#8197",
    "containernetworking/cni#1055",
    "containernetworking/cni#1149",
    "containernetworking/cni/pull/1072",
    "containernetworking/cni/pull/1066",
    "aws/amazon-vpc-cni-k8s#2283",
    "bottlerocket-os/bottlerocket/pull/3792",
  ],
  prevention: ({ name, version }) =>
    name.startsWith("containerd") && containerdBehaviour(version)?.corruptResultBlocks === true
      ? `containerd ${version}: an empty or half-written CNI result file blocks the removal of its sandbox. containerd 2.0 and later tolerate it.`
      : undefined,
  detect,
  cacheFiles: ({ results }) => valueOr(results, []),
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  return candidates.flatMap((candidate) => {
    const broken = blockingResults(candidate.about.results, view);
    const [first] = broken;
    if (first === undefined) return [];
    return [
      sandboxDetected(candidate, {
        severity: "critical",
        summary: `CNI DEL cannot read the cached result of network ${first.network}, so every stop and every removal fails; kubelet repeats the same call forever`,
        evidence: broken.map((file) => ({ source: "cni", fact: brokenInWords(file) })),
        path: first.path,
        cure: broken.map(stepToQuarantine),
      }),
    ];
  });
}

export const multusCacheCorrupt: ClassDefinition = {
  id: "multus-cache-corrupt",
  code: "B2",
  needsMultus: true,
  title: "Corrupt multus cache",
  explanation:
    "A power cut damaged the file in which multus remembers which networks it gave to this pod. Old multus then fails every removal; multus 4 reports success without a DEL of the networks, so their addresses leak.",
  mechanism:
    "multus writes /var/lib/cni/multus/<id> without fsync. Up to 3.9 an unreadable file makes DEL fail forever; from 4.0.0 DEL logs it and returns success before any delegate is called.",
  signatures: () => [
    {
      text: "Multus: failed to load netconf: unexpected end of JSON input",
      pattern: /failed to load netconf: (?:unexpected end|invalid character)/,
      during: "removing",
      within: /multus/,
      confidence: 0.95,
    },
    {
      text: "failed to load netconf: unexpected end of JSON input (under a DEL, multus not named)",
      pattern: /failed to load netconf: (?:unexpected end|invalid character)/,
      during: "removing",
      within: /sandbox|network|failed \(delete\)|delegate/,
      unless: /plugin type=(?!multus)|unable to parse cni configuration/,
      confidence: 0.7,
    },
    {
      text: "Multus: failed to get the cached delegates file: <nil>, cannot properly delete",
      pattern: /failed to get the cached delegates file: <nil>/,
      confidence: 0.9,
    },
  ],
  logFragments: ["multus"],
  inSnapshot: { conclusive: true, how: "The multus cache file of a sandbox is empty or is not JSON." },
  versions: {
    since: "every multus 3",
    until: "multus 3.9",
    ends: "Upgrade multus to 4.0, whose DEL succeeds; its delegates' addresses leak. `unghost keep` prevents the empty file.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the corrupt file to quarantine.",
      "Stop and remove the sandbox over CRI.",
      "Sweep the addresses its networks had allocated.",
    ],
    gates: ["The file cannot be parsed.", "Its sandbox is dead: NotReady, no container running, no task, no shim."],
  },
  byHand: [
    "Move /var/lib/cni/multus/<id> away.",
    "crictl stopp <id> && crictl rmp <id>",
    "Free the addresses that still carry the id below /var/lib/cni/networks or in whereabouts.",
  ],
  danger:
    "Never write [] or null into the file as a repair: multus would read the first element of an empty list and crash.",
  links: ["k8snetworkplumbingwg/multus-cni#948", "k8snetworkplumbingwg/multus-cni#1087"],
  prevention: () =>
    `multus: releases up to ${MULTUS.corruptCacheFailsUpTo} fail every DEL on a cache that does not parse; later ones succeed without calling the delegates, whose addresses are then to be swept.`,
  detect: (view, candidates) => withCorruptFile(view, candidates, ({ multus }) => multus, MULTUS_SUMMARY),
  cacheFiles: ({ multus }) => valueOr(multus, undefined)?.files ?? [],
};

const MULTUS_SUMMARY =
  "multus cannot read which delegates it had called: up to 3.9 every removal fails, from 4.0 on it succeeds without calling them and leaks their addresses";

export const delegateScratchCorrupt: ClassDefinition = {
  id: "delegate-scratch-corrupt",
  code: "B22",
  title: "Corrupt flannel scratch file",
  explanation:
    "A power cut emptied the file in which flannel's plugin keeps what it passed on to the bridge plugin. Older versions fail every removal because of it; newer ones report success and leave the address allocated.",
  mechanism:
    "Before its release 1.2.0 flannel's plugin writes /var/lib/cni/flannel/<id> without a sync. DEL reads it to call its delegate and cannot parse it.",
  signatures: () => [
    {
      text: "failed to parse netconf: unexpected end of JSON input",
      pattern: /failed to parse netconf: (?:unexpected end|invalid character)/,
      during: "removing",
      confidence: 0.9,
    },
    {
      text: "/var/lib/cni/flannel/<id>: … unexpected end of JSON input",
      pattern: /\/var\/lib\/cni\/flannel\/\S{1,80}[^]{0,80}?(?:unexpected end of json|invalid character)/,
      confidence: 0.9,
    },
  ],
  logFragments: ["netconf", "cni"],
  inSnapshot: { conclusive: true, how: "The flannel scratch file of a sandbox is empty or is not JSON." },
  versions: {
    since: "early releases of flannel's CNI plugin",
    until: "flannel's CNI plugin 1.1",
    ends: "Update flannel's CNI plugin to 1.2.0, which syncs the file. With an earlier one `unghost keep` prevents the empty file.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the corrupt file to quarantine.",
      "Stop and remove the sandbox over CRI.",
      "Sweep the address that stays allocated.",
    ],
    gates: ["The file cannot be parsed.", "Its sandbox is dead: NotReady, no container running, no task, no shim."],
  },
  byHand: [
    "Move /var/lib/cni/flannel/<id> away, crictl rmp <id>.",
    "Free the address: the file below /var/lib/cni/networks that names the id.",
  ],
  danger: "The bridge's address stays allocated unless it is swept.",
  links: ["k8snetworkplumbingwg/multus-cni#1448", "k8snetworkplumbingwg/multus-cni#1447"],
  detect: (view, candidates) => withCorruptFile(view, candidates, ({ flannel }) => flannel, SCRATCH_SUMMARY),
  cacheFiles: ({ flannel }) => valueOr(flannel, []),
};

const SCRATCH_SUMMARY =
  "flannel cannot read the network it had delegated to: older plugins fail every removal, newer ones succeed and leak the bridge address";
