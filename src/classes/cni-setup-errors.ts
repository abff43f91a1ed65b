import type { Detected } from "../evidence/finding.ts";
import { freshErrors } from "../evidence/reports.ts";
import type { NodeView } from "../evidence/view.ts";
import { cniContext } from "../logs/context.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const staleCniConfFirst: ClassDefinition = {
  id: "stale-cni-conf-first",
  code: "A18",
  sharedCause: true,
  title: "The configuration of a removed network add-on is still first",
  explanation:
    "The runtime uses the first file of its CNI directory, and that file belongs to a network add-on that was uninstalled. Its plugin reads a kubeconfig or calls a daemon that will never come back, so no pod gets a network until the file is moved away.",
  mechanism:
    "Uninstalling an add-on deletes its pods, but not what its installer copied to the node: the files in /etc/cni/net.d and the binaries. Files are taken in the order of their names, so a left 00-… or 01-… hides the add-on that is installed now.",
  signatures: () => [
    {
      text: "failed to get context for the kubeconfig <dir>/multus.d/multus.kubeconfig: stat …: no such file or directory",
      pattern: /failed to get context for the kubeconfig \S{1,200}[^]{0,120}?no such file/,
      confidence: 0.85,
      decides:
        "No pod of that add-on runs in the cluster: this class. One should run here: its pod has not written the file yet.",
    },
    {
      text: "stat /etc/cni/net.d/<add-on>-kubeconfig: no such file or directory",
      pattern: /(?:stat|open) \S{0,100}\/net\.d\/\S{0,80}kubeconfig: no such file/,
      within: cniContext,
      confidence: 0.8,
      decides:
        "No pod of that add-on runs in the cluster: this class. One should run here: its pod has not written the file yet.",
    },
    {
      text: "unable to connect to Cilium agent, after cilium was removed",
      pattern: /unable to connect to cilium/,
      level: "cause",
      confidence: 0.2,
      decides:
        "kubectl get pods -A -o wide shows no cilium pod for this node: its configuration was left behind. One is there but not Ready: B11.",
    },
  ],
  logFragments: ["kubeconfig", "cilium"],
  inSnapshot:
    "Where a log has the error, the first file of the CNI directory names a kubeconfig that does not exist or a plugin that is not installed, and a later file names none such.",
  versions: {
    since: "every release",
    until: "open",
    ends: "Remove the file with the add-on: uninstallers of multus, cilium, linkerd-cni and microk8s leave it behind.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "ls /etc/cni/net.d: the first name wins. Name the add-on that it belongs to.",
      "If that add-on is not installed any more, move the file out of the directory (not to another name in it).",
      "The runtime takes the next file at once; sandboxes of the old add-on are then removed without its DEL.",
    ],
    gates: [
      "No pod of that add-on exists in the cluster.",
      "Another configuration is there, and its plugin is installed.",
    ],
  },
  byHand: [
    "ls /etc/cni/net.d (k3s: /var/lib/rancher/k3s/agent/etc/cni/net.d; microk8s: /var/snap/microk8s/current/args/cni-network).",
    "mv /etc/cni/net.d/<old file> /root/; crictl info | grep -A3 NetworkReady",
  ],
  danger:
    "With the only configuration moved away no pod of the node gets a network. Check which file would be first afterwards.",
  links: [
    "kubevirt/cluster-network-addons-operator#621",
    "cilium/cilium#8872",
    "linkerd/linkerd2#10738",
    "kubernetes/kubernetes#107127",
    "canonical/microk8s#5012",
  ],
  detect: detectConfInFront,
};

function detectConfInFront(view: NodeView): readonly Detected[] {
  const stale = view.snapshot.pointedAt?.confInFront;
  if (stale === undefined || freshErrors(view, /kubeconfig/).length === 0) return [];
  const { file, fault, working } = stale;
  return [
    {
      severity: "critical",
      subject: { type: "file", path: file },
      summary: `the runtime uses ${file}, and ${fault}; ${working} comes after it`,
      evidence: [
        { source: "cni", fact: `${file}: ${fault}` },
        { source: "cni", fact: `${working}: its plugins are installed, and what it names exists` },
      ],
      blocks: ["every new pod with its own network, and the removal of those that have one"],
      untreatable: `manual: if no pod of this cluster serves that plugin any more, move ${file} out of the directory`,
    },
  ];
}

export const ovnPortNotReady: ClassDefinition = {
  id: "ovn-port-not-ready",
  code: "A19",
  sharedCause: true,
  title: "OVN never finished the pod's port",
  explanation:
    "The plugin asked OVN-Kubernetes for the pod's network and waited, but OVN never finished: either the pod's annotation with its addresses was never written, or the switch port was never bound. The sandbox is only where it shows; OVN's own pods have the cause.",
  mechanism:
    "ovnkube-controller writes the annotation k8s.ovn.org/pod-networks, the plugin plugs the port into br-int, and ovn-controller sets ovn-installed once its flows are there. A controller that is behind, a database that does not answer, or a program that overwrites the annotations stops this.",
  signatures: () => [
    {
      text: "timed out waiting for OVS port binding (ovn-installed) for <mac> [<ip>]",
      pattern:
        /waiting for ovs port binding|timed out waiting for (?:ovs|pod) flows|error while waiting on flows for pod/,
      confidence: 0.95,
    },
    {
      text: "failed to get pod annotation: timed out waiting for annotations: context deadline exceeded",
      pattern: /failed to get pod annotation(?!: pods? )|timed out waiting for annotations/,
      confidence: 0.93,
    },
    {
      text: "timed out dumping br-int flow entries for sandbox",
      pattern: /timed out dumping br-int flow entries|timeout waiting for ovs port/,
      confidence: 0.9,
    },
  ],
  logFragments: [
    "ovs port",
    "ovs flows",
    "pod flows",
    "waiting on flows",
    "pod annotation",
    "for annotations",
    "br-int flow",
  ],
  inSnapshot: "OVN's databases are not read; the logs of its pods on this node have the cause.",
  versions: { since: "every release of ovn-kubernetes", until: "open", ends: "No upgrade: repair OVN." },
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: [
    "kubectl get pod <pod> -o jsonpath='{.metadata.annotations}': without k8s.ovn.org/pod-networks check ovnkube-controller, with it at ovn-controller and ovs-vswitchd on the node.",
    "kubectl -n <ovn namespace> get pods -o wide; logs of ovnkube-node and ovn-controller of this node.",
    "A scheduler or webhook that replaces all annotations of a pod removes OVN's.",
  ],
  danger: "Deleting sandboxes by the dozen adds work to an OVN that is behind already.",
  links: [
    "okd-project/okd#1109",
    "okd-project/okd#1172",
    "ovn-kubernetes/ovn-kubernetes#3115",
    "ovn-kubernetes/ovn-kubernetes#2590",
    "ovn-kubernetes/ovn-kubernetes#3859",
  ],
};

export const multusDelegatesToItself: ClassDefinition = {
  id: "multus-delegates-to-itself",
  code: "A20",
  needsMultus: true,
  sharedCause: true,
  title: "multus uses its own file as the cluster network",
  explanation:
    "multus was configured with itself as the cluster's network, or chose itself as the first file of a directory. Each call then calls multus again, and the error repeats its own name until it is cut. No pod gets a network.",
  mechanism:
    "multus takes the first configuration of a directory as the cluster network. If its own file is in that directory, or clusterNetwork names it, it delegates to itself.",
  signatures: () => [
    {
      text: 'error adding container to network "multus-cni-network": … error adding container to network "multus-cni-network": …',
      // At the end of the line: whatever the innermost call answers is a consequence.
      pattern:
        /(?<=adding (?:container|pod) to (?:cni )?network multus-cni-network[^]{0,400}?adding (?:container|pod) to (?:cni )?network multus-cni-network[^]{0,600})$/,
      confidence: 0.98,
    },
  ],
  logFragments: ["multus-cni-network"],
  inSnapshot: "multus' choice is not recorded on the node; its configuration file names the cluster network.",
  versions: {
    since: "multus 3",
    until: "open",
    ends: "No upgrade: keep multus' own file out of multusAutoconfigDir and of a configuration written by hand.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Name the real network in multus' configuration: clusterNetwork, or delegates, with the file of the main add-on.",
      "Make sure that multusAutoconfigDir (cniDir) does not point at the directory with multus' own file alone.",
    ],
    gates: ["The main add-on's configuration exists on the node."],
  },
  byHand: ["cat /etc/cni/net.d/00-multus.conf, and ls the directory that its clusterNetwork or delegates name."],
  danger: "Each failing call starts a chain of processes: fix the file before pods are deleted to retry.",
  links: ["intel/afxdp-plugins-for-kubernetes#56"],
};

export const cniStoreLocked: ClassDefinition = {
  id: "cni-store-locked",
  code: "B28",
  sharedCause: true,
  title: "azure-vnet: the plugin's store is locked",
  explanation:
    "Azure's network plugin keeps its state in one file behind one lock, and another call holds the lock or died with it. Every set-up and tear-down on this node waits for the lock and fails.",
  mechanism:
    "The plugin takes the process lock for the whole of a CNI call. Under load calls wait past their limit; a call that is killed under load can leave the lock file behind, and then no later call gets it.",
  signatures: () => [
    {
      text: 'plugin type="azure-vnet" failed (delete): Failed to initialize key-value store of network plugin: timed out locking store',
      pattern: /timed out locking store|failed to initialize key-value store|error acquiring store lock/,
      confidence: 0.96,
    },
    {
      text: "[cni] Failed to lock store: Store is locked",
      pattern: /\bstore is locked\b/,
      within: /\bcni\b|vnet|azure/,
      confidence: 0.9,
    },
  ],
  logFragments: ["locking store", "key-value store", "store lock", "store is locked"],
  inSnapshot: "Azure's lock file is not read; /var/run/azure-vnet.json.lock names the process that has it.",
  versions: {
    since: "azure-vnet 1.0",
    until: "azure-vnet 1.4",
    ends: "Move to the stateless Azure CNI, which has no lock (rolled out from Kubernetes 1.30 on, for Windows first).",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Under load it passes: start fewer pods at a time.",
      "If it stays: the process whose number is in the lock file is gone. Drain the node and reboot or replace it.",
      "Update the cluster's CNI to the stateless one.",
    ],
    gates: [],
  },
  byHand: [
    "cat /var/run/azure-vnet.json.lock and check whether that process runs; azure-vnet.log shows who waits.",
    "kubectl drain, then reboot the node.",
  ],
  danger:
    "Removing the lock while its owner runs lets two calls write the state at once, which makes duplicate addresses.",
  links: [
    "Azure/azure-container-networking#464",
    "Azure/azure-container-networking#1359",
    "Azure/azure-container-networking#2817",
    "Azure/azure-container-networking#289",
    "Azure/azure-container-networking#242",
  ],
};

export const cniKubeconfigCaStale: ClassDefinition = {
  id: "cni-kubeconfig-ca-stale",
  code: "B29",
  sharedCause: true,
  title: "The network plugin does not trust the API server's certificate",
  explanation:
    "The network plugin rejects the API server's certificate: the authority in its kubeconfig is not the one that the cluster uses now, mostly after a rotation or a re-installation. Pods can neither get nor give back their network until the add-on writes a new kubeconfig.",
  mechanism:
    "calico-node, multus and others write a kubeconfig with the cluster's CA into /etc/cni/net.d when they start. A CA that changes later stays unknown to the plugin.",
  signatures: () => [
    {
      text: 'plugin type="calico" failed (add): error getting ClusterInformation: … x509: certificate signed by unknown authority',
      pattern: /x509: certificate (?:signed by unknown authority|has expired|is not valid|is valid for)/,
      within:
        /plugin type=|networkplugin cni|multus|clusterinformation|failed \((?:add|delete)\)|(?:network for|stop|kill|create) (?:pod )?sandbox|podsandbox/,
      unless: /pull(?:ing)? image|image pull|errimagepull|registry|sandbox image|webhook/,
      confidence: 0.93,
    },
  ],
  logFragments: ["x509:"],
  inSnapshot:
    "Where a log has the error, the kubeconfig that the configuration names trusts none of the authorities with which kubelet reaches the API server.",
  versions: {
    since: "every plugin with a kubeconfig of its own on the node",
    until: "open",
    ends: "No upgrade: restart the network add-on after a rotation of the cluster's CA.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the add-on's pod on this node, which writes its kubeconfig again; then stop and remove what is left over.",
      "If the message is about the time (expired, not yet valid), check the node's clock first.",
    ],
    gates: ["The API server's own certificate is right: kubectl works with the cluster's CA."],
  },
  byHand: [
    "grep certificate-authority-data /etc/cni/net.d/*kubeconfig, and compare with the ConfigMap kube-root-ca.crt.",
    "kubectl -n kube-system delete pod <the add-on's pod on this node>",
  ],
  danger: "Never switch the verification off: the plugin's token goes to any server that answers.",
  links: ["projectcalico/calico#4308", "projectcalico/calico#6425"],
  detect: detectStaleAuthority,
};

function detectStaleAuthority(view: NodeView): readonly Detected[] {
  const trust = view.snapshot.pointedAt?.trust;
  if (trust === undefined || freshErrors(view, /x509: certificate signed by unknown authority/).length === 0) return [];
  const current = new Set(trust.cluster.flatMap(({ fingerprints }) => fingerprints));
  const [reference] = trust.cluster;
  if (reference === undefined) return [];
  return trust.plugins
    .filter(({ fingerprints }) => fingerprints.length > 0 && fingerprints.every((one) => !current.has(one)))
    .map(
      ({ path }): Detected => ({
        severity: "critical",
        subject: { type: "file", path },
        summary: `${path} trusts another certificate authority than ${reference.path}: the network plugin rejects the API server`,
        evidence: [{ source: "cni", fact: `${path} and ${reference.path} have no certificate authority in common` }],
        blocks: ["every new pod with its own network, and the removal of those that have one"],
        untreatable: "manual: delete the network add-on's pod of this node; its next one writes the file again",
      }),
    );
}

export const multusShimNewerThanDaemon: ClassDefinition = {
  id: "multus-shim-newer-than-daemon",
  code: "B30",
  needsMultus: true,
  sharedCause: true,
  title: "multus' shim and its daemon are of different versions",
  explanation:
    "The multus binary on the node is newer than the multus daemon beside it, and asks it something that the daemon does not know. Every new pod waits until the shim gives up, although the DaemonSet is shown as healthy.",
  mechanism:
    "The init container copies the shim of its image onto the node; the daemon comes from the image of the main container. The shim of 4.3.1 waits for an answer of /readyz, which daemons up to 4.3.0 answer with 404.",
  signatures: () => [
    {
      text: "multus-daemon: POST /readyz … http not found",
      pattern: /post \S{0,60}\/readyz\b[^]{0,120}?(?:not found|404)|http not found[^]{0,80}?\/readyz/,
      confidence: 0.93,
    },
    {
      text: "CmdAdd (shim): timed out waiting for the condition",
      pattern: /cmdadd \(shim\):[^]{0,40}?timed out waiting for the condition/,
      confidence: 0.4,
      decides:
        "The daemon runs and its log has “/readyz … not found”: shim and daemon differ (B30). It is down, restarting or hangs: B5.",
    },
  ],
  logFragments: ["/readyz", "(shim)"],
  inSnapshot: "The versions of the shim and of the daemon's image are not compared yet.",
  versions: {
    since: "multus 4.3.1 as the shim, with a daemon up to 4.3.0",
    until: "open",
    ends: "Run the same version on both sides: roll the DaemonSet out again.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Use one image for the init container and the daemon of the DaemonSet, by tag or digest.",
      "Roll the DaemonSet out; each pod copies its shim again.",
      "Give the daemon a readiness probe, so that such a mismatch shows.",
    ],
    gates: ["The images of the DaemonSet's init container and container differ, or the daemon's log has the 404."],
  },
  byHand: [
    "kubectl -n kube-system get ds kube-multus-ds -o jsonpath='{.spec.template.spec.initContainers[*].image} {.spec.template.spec.containers[*].image}'",
    "kubectl -n kube-system logs ds/kube-multus-ds | grep readyz",
  ],
  danger: "Rolling back the daemon alone keeps the new shim on the nodes: roll back both.",
  links: ["keiretsu-labs/kubernetes-manifests/pull/2905", "keiretsu-labs/kubernetes-manifests/pull/2903"],
};
