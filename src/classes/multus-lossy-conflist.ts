import type { Candidate } from "../evidence/candidates.ts";
import { failsWithoutResult, networkReleased } from "../evidence/ending.ts";
import type { Detected } from "../evidence/finding.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import { MULTUS, multusVariant } from "../evidence/versions.ts";
import type { AboutId, NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { cniContext } from "../logs/context.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const multusLossyConflist: ClassDefinition = {
  id: "multus-lossy-conflist",
  code: "B4",
  needsMultus: true,
  title: "Multus strips the delegate's configuration",
  explanation:
    "This version of multus forgets the plugin's own settings when it reads a configuration list from a file. Creating works, removing gets a stripped configuration and the plugin refuses it: kube-ovn misses its socket, calico its kubeconfig.",
  mechanism:
    "LoadDelegateNetConfFromConfList re-marshals only the fields it knows. ADD uses the full bytes, DEL the stripped ones. Not an effect of a missing cache.",
  signatures: () => [
    {
      text: 'plugin type="kube-ovn" failed (delete): Invalid Configuration; server_socket is required in cni.conf, <dump>',
      pattern: /server_socket is required in cni\.conf/,
      during: "removing",
      confidence: 0.95,
    },
    {
      text: "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable (from a plugin's DEL)",
      pattern: /no configuration has been provided(?:,? try|,? ?[…>]?$)/,
      during: "removing",
      within: cniContext,
      confidence: 0.85,
    },
  ],
  logFragments: ["plugin", "kubernetes_master"],
  inSnapshot:
    "The multus cache of a dead sandbox has a setting in its copy for ADD that its copy for DEL lacks, and the network plugin is known to refuse DEL without that setting.",
  versions: {
    since: "multus 4.2.1",
    until: "multus 4.3.0",
    ends: "Upgrade multus beyond 4.3.0.",
    note: "Fixed on master in July 2026.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Move the incomplete cache to quarantine and give multus one it cannot parse: DEL then returns success without calling the delegates, for as long as the sandbox exists.",
      "Let kubelet stop the sandbox, or stop and remove it over CRI.",
      "Release what the delegates had allocated. The operator has to change the multus version.",
    ],
    gates: [
      "The sandbox is dead: NotReady, no container running, no task, no shim.",
      "Its cache lacks what the plugin requires, or removal failed with exactly this refusal.",
    ],
  },
  byHand: [
    "Install a multus without this defect, or write the delegate inline instead of pointing at a file.",
    "Delete the stuck pods by force, then sweep the addresses.",
  ],
  danger: "Every pod that is deleted leaks until multus is changed: sweeping is a stop-gap.",
  links: [
    "kubeovn/kube-ovn#5448",
    "k8snetworkplumbingwg/multus-cni#1449",
    "k8snetworkplumbingwg/multus-cni/pull/1521",
    "openshift/multus-cni/pull/336",
  ],
  prevention: () =>
    `multus: ${MULTUS.lossyConflist.from} to ${MULTUS.lossyConflist.to} strip a delegate's own fields from file-based configurations on DEL. Use an older or a newer release, or spell the delegates out in multus' own configuration.`,
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  const multus = valueOr(view.snapshot.cni.conf, undefined)?.multus;
  const dir = valueOr(view.snapshot.cni.multus, undefined)?.dir;
  if (multus === undefined || dir === undefined || !multusVariant(multus).failedDelBlocksRemoval) return [];
  return candidates.flatMap((candidate) => {
    const { sandbox, about } = candidate;
    const missed = (about.multus?.strippedKeys ?? []).filter((key) => REQUIRED_ON_DEL.has(key));
    if (about.multus === undefined || missed.length === 0 || !isDelDue(about, view)) return [];
    const { path } = about.multus;
    return [
      sandboxDetected(candidate, {
        severity: "critical",
        summary: `multus stripped ${missed.join(", ")} from the configuration it keeps for DEL: the network plugin refuses every removal`,
        evidence: [
          { source: "cni", fact: `${path} has ${missed.join(", ")} in its copy for ADD and not in the one for DEL` },
        ],
        path,
        cure: [
          { kind: "quarantine-file", path, health: "stripped" },
          { kind: "multus-marker", sandboxId: sandbox.id, dir },
        ],
      }),
    ];
  });
}

/** Settings without which a delegate fails DEL: kube-ovn's socket, and calico's datastore. */
const REQUIRED_ON_DEL: ReadonlySet<string> = new Set(["server_socket", "kubernetes", "etcd_endpoints"]);

/**
 * Whether its removal calls DEL and fails with it. Old containerd releases require DEL even if ADD never completed, and
 * then there never was a cached result.
 */
function isDelDue(about: AboutId, view: NodeView): boolean {
  if (about.metadata?.hostNetwork === true) return false;
  return !networkReleased(about, view) || failsWithoutResult(about, view);
}
