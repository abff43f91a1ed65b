import { cniContext } from "../logs/context.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const calicoUnauthorized: ClassDefinition = {
  id: "calico-unauthorized",
  code: "B8",
  sharedCause: true,
  title: "The CNI plugin's API token is stale",
  explanation:
    "The network plugin is not allowed to talk to the API server any more: the token in its kubeconfig has expired or belongs to a service account that was made again. Pods can neither get nor give back their network until calico-node writes a fresh one.",
  mechanism:
    "calico-node renews the token in /etc/cni/net.d/calico-kubeconfig. If it does not run, the clock jumped, or the VM was paused, the plugin presents an old one and the API answers 401.",
  signatures: () => [
    {
      text: 'plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized',
      pattern: /clusterinformation: connection is unauthorized|connection is unauthorized: unauthorized/,
      confidence: 0.95,
    },
    {
      text: "… : Unauthorized, from a CNI plugin",
      pattern: /(?::|\]) unauthorized\b|the server has asked for the client to provide credentials/,
      within: /plugin type=|networkplugin cni|multus|failed \((?:add|delete)\)|clusterinformation/,
      unless: /pull access|failed to authorize|pull image|manifests/,
      confidence: 0.75,
    },
  ],
  logFragments: ["plugin", "multus", "unauthorized", "error getting pod"],
  inSnapshot:
    "Whether a token is still accepted shows only when it is used; the plugin's answer in the logs is the proof.",
  versions: {
    since: "every plugin with a token file",
    until: "open",
    ends: "No upgrade. A right clock, and a calico-node that runs, keep the token fresh.",
    note: "Reports from 2021 to 2026; microk8s after a snap refresh.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Restart the calico-node pod of this node.",
      "Wait until calico-kubeconfig is newer than before.",
      "Stop and remove what is left over.",
    ],
    gates: ["The kubeconfig is older than the last restart of calico-node."],
  },
  byHand: [
    "Check the clock, then delete the calico-node pod of this node.",
    "Watch the date of /etc/cni/net.d/calico-kubeconfig change; the kubelet does the rest. On MicroK8s the file is /var/snap/microk8s/current/args/cni-network/calico-kubeconfig.",
    "MicroK8s after a snap refresh: the calico pods of the workers are not made again, and their token ends after a day; delete them.",
  ],
  danger: "Do not unmount network namespaces to get rid of the pods: address and endpoint leak.",
  links: [
    "projectcalico/calico#4857",
    "projectcalico/calico#5712",
    "projectcalico/calico#9428",
    "projectcalico/calico#9271",
    "canonical/microk8s#4661",
    "canonical/microk8s#5583",
  ],
};

export const cniDelNeedsApiserver: ClassDefinition = {
  id: "cni-del-needs-apiserver",
  code: "B9",
  sharedCause: true,
  title: "The CNI plugin cannot reach the API server",
  explanation:
    "The network plugin needs the Kubernetes API to add or remove a pod, and cannot reach it. After a reboot of the control plane this is a circular dependency: the API's service address needs a network that needs the API. It ends on its own once the API is reachable from the host.",
  mechanism:
    "Calico, multus and others read pods or cluster settings over the service address on ADD and DEL. While kube-proxy or the network itself is down that address leads nowhere.",
  signatures: () => [
    {
      text: 'error getting ClusterInformation: Get "https://<service-ip>:443/…": dial tcp …: i/o timeout | connection refused',
      pattern:
        /error getting clusterinformation: (?:get \S{1,300}: (?:dial|net\/http|context|eof|http|read|write|unexpected|tls: handshake|i\/o|remote|stream|service|too many|the server|etcd|proxyconnect|connect)|an error|context)/,
      confidence: 0.9,
    },
    {
      text: "error getting ClusterInformation: Get … x509: certificate signed by unknown authority",
      pattern:
        /error getting clusterinformation: get \S{1,300}: [^]{0,80}?x509: certificate (?:signed by unknown authority|has expired|is not valid|is valid for)/,
      confidence: 0.2,
      decides:
        "Whether the certificate of the API server was changed: then the plugin does not trust it (B29). A proxy or another host that answers at that address: this class.",
    },
    {
      text: 'an error on the server ("") has prevented the request from succeeding (from a plugin)',
      pattern: /an error on the server \([^)]{0,120}\) has prevented the request from succeeding/,
      within: cniContext,
      confidence: 0.85,
    },
    {
      text: "Multus: [<namespace>/<pod>]: error getting pod: Get … / error waiting for pod: …",
      pattern:
        /error (?:getting|waiting for) pod: (?:get |an error on|the server|context|client rate|timed out|dial|net\/http|etcdserver|service unavailable|internal error|eof)/,
      within: /multus|plugin type=|cmdadd|cmddel|sandbox/,
      unless: /pods? \S{1,300} not found|unauthorized/,
      confidence: 0.8,
    },
    {
      text: 'Get "https://<api>/…": dial tcp <api>: i/o timeout | connection refused | no route to host (from a plugin)',
      pattern:
        /dial tcp \S{3,60}: (?:i\/o timeout|connect: |getsockopt: |connection refused|no route to host|operation was canceled|lookup)|net\/http: (?:tls handshake timeout|request canceled)|dial tcp: lookup \S/,
      within: cniContext,
      unless:
        /pull image|sandbox image|127\.0\.0\.1:(?!6443|6444|7445|8443)|runtime service failed: [^]{0,40}unavailable/,
      level: "wrapper",
      confidence: 0.65,
      decides:
        "The address: the API server's or its service address is this class; a port on 127.0.0.1 belongs to a node agent (B13).",
    },
    {
      text: "etcd cluster is unavailable or misconfigured (from a plugin)",
      pattern: /etcd cluster is unavailable|etcdserver: request timed out/,
      within: cniContext,
      level: "wrapper",
      confidence: 0.65,
    },
  ],
  logFragments: ["plugin", "multus", "sandbox", "clusterinformation", "error waiting for pod"],
  inSnapshot:
    "A snapshot sees whether unghost reaches the API, not whether the plugin does over the service address; the plugin's error in the logs is the proof.",
  versions: {
    since: "every network add-on that needs the API on DEL",
    until: "open",
    ends: "No upgrade: a reachable API server, or a network add-on with a local agent.",
  },
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["Wait for the API; the kubelet's own retry then finishes the work."],
    gates: [],
  },
  byHand: [
    "Bring API server and kube-proxy up first: they use the host network and do not need the CNI.",
    "From the node: curl -k https://<service-ip>:443/livez",
    "Once it answers, kubelet removes the pods.",
  ],
  danger: "Forcing removals during the outage leaks every address of the node.",
  links: ["containerd/containerd#6565", "containerd/cri#732", "projectcalico/calico#7220"],
};

export const calicoNodenameMissing: ClassDefinition = {
  id: "calico-nodename-missing",
  code: "B10",
  sharedCause: true,
  title: "calico-node is not running on this node",
  explanation:
    "Calico's plugin reads the node's name from a file that calico-node writes when it starts. The file is not there, so calico-node has not come up since the last boot. Pods can neither start nor go until it does.",
  mechanism:
    "The plugin stats /var/lib/calico/nodename unless it is marked optional. With the network namespace gone go-cni turns this very text into success; with it still there the removal loops.",
  signatures: () => [
    {
      text: "stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/",
      pattern: /\/var\/lib\/calico\/nodename|check that the calico\/node container is running/,
      confidence: 0.95,
    },
  ],
  logFragments: ["calico"],
  inSnapshot: "The file lies outside what a snapshot reads; the plugin's error in the logs names it.",
  versions: { since: "calico 3.0", until: "open", ends: "No upgrade: calico-node writes the file when it runs." },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Get calico-node running on this node.", "The kubelet's retry finishes the rest."],
    gates: [],
  },
  byHand: ["kubectl -n calico-system (or kube-system) get pods -o wide: repair the calico-node pod of this node."],
  danger: "Writing the file by hand with a wrong name gives endpoints to the wrong node.",
  links: ["projectcalico/calico#1795", "projectcalico/calico#6309", "kubesphere/kubekey#2504"],
};

export const ciliumAgentDown: ClassDefinition = {
  id: "cilium-agent-down",
  code: "B11",
  sharedCause: true,
  title: "The cilium agent is down",
  explanation:
    "Cilium's plugin cannot reach the cilium agent of this node. A creation fails on every version. A removal fails at once on older versions; newer ones write it into a queue and fail only when that queue is full or locked. Everything clears when the agent is back. If cilium was removed from the cluster, its configuration was left behind: A18.",
  mechanism:
    "The plugin talks to /var/run/cilium/cilium.sock. With the deletion queue, DEL is stored as a file below the state directory, at most 256 of them, and replayed when the agent starts.",
  signatures: () => [
    {
      text: "unable to connect to Cilium daemon: failed to create cilium agent client after 30.000000 seconds timeout: … Is the agent running?",
      pattern: /unable to connect to cilium|failed to create cilium agent client/,
      confidence: 0.95,
      decides:
        "kubectl -n kube-system get pods -l k8s-app=cilium -o wide: this node's pod is there, but not Ready. With no such pod in the cluster cilium was removed and its configuration left behind (A18).",
    },
    {
      text: "dial unix /var/run/cilium/cilium.sock: connect: no such file or directory",
      pattern: /cilium\.sock: connect/,
      confidence: 0.9,
    },
    {
      text: "failed to acquire deletion queue: … / deletion queue directory … has too many entries; aborting",
      pattern:
        /failed to acquire deletion queue|deletion queue directory \S{1,200} has too many entries|deletequeue has too many entries/,
      confidence: 0.95,
    },
  ],
  logFragments: ["cilium", "deletion queue", "deletequeue"],
  inSnapshot: "The agent's socket and queue are not read; the plugin's error in the logs is the proof.",
  versions: {
    since: "every cilium release at ADD; at DEL up to the deletion queue of 2023",
    until: "open",
    ends: "An agent that runs. Releases with the deletion queue (cilium/cilium pull request 23486) fail at DEL only when the queue is full or locked.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Get the cilium pod of this node running; the queue then drains automatically."],
    gates: [],
  },
  byHand: ["kubectl -n kube-system get pods -l k8s-app=cilium -o wide: repair the one on this node, then wait."],
  danger: "Deleting the queue's files loses removals; addresses are then handed out twice.",
  links: ["cri-o/cri-o#4084", "rancher/rke2#4146", "cilium/cilium#27715", "cilium/cilium#40345"],
};

export const ciliumEmptyNetns: ClassDefinition = {
  id: "cilium-empty-netns",
  code: "B12",
  title: "Cilium refuses to remove a pod whose namespace is gone",
  explanation:
    "After a reboot the pod's network namespace no longer exists. This version of cilium takes that for an error instead of for work already done, so the pod stays Terminating.",
  mechanism:
    "DEL runs with an empty namespace path; the plugin tries to open it and fails. containerd's go-cni takes the text for success, CRI-O does not.",
  signatures: () => [
    {
      text: 'plugin type="cilium-cni" failed (delete): opening netns pinned at : open : no such file or directory: stat netns path "": …',
      // CRI-O ends every DEL error with “stat netns path …” once the namespace is gone: that alone proves nothing.
      pattern: /opening netns pinned at/,
      during: "removing",
      confidence: 0.95,
    },
  ],
  logFragments: ["cni"],
  inSnapshot:
    "A namespace that is gone is normal after a reboot; only the plugin's error in the logs makes it this class.",
  versions: { since: "cilium 1.17.5, with CRI-O 1.33.1", until: "cilium 1.17", ends: "Upgrade cilium to 1.18." },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "CRI-O 1.32.8, 1.33.4, 1.34.0 and later succeed on the second try.",
      "Otherwise upgrade cilium, or delete the pod by force.",
    ],
    gates: ["The sandbox is dead and its namespace does not exist."],
  },
  byHand: ["Upgrade cilium to 1.18, or CRI-O; until then kubectl delete pod --force."],
  danger: "Endpoint and address may stay in cilium until the agent collects them.",
  links: ["cilium/cilium#40459", "kubernetes/kubernetes#133081"],
};

export const devicePluginCacheMissing: ClassDefinition = {
  id: "device-plugin-cache-missing",
  code: "B15",
  title: "A device plugin lost its own notes",
  explanation:
    "The SR-IOV (or a spidernet) plugin keeps a private file for each interface and refuses to remove the pod when that file is gone, as after a reboot. Nothing is left to undo, but the plugin returns an error instead of success.",
  mechanism:
    "The plugin reads <id>-<interface> from its own directory on DEL and returns the read error, against the CNI rule that DEL of something absent succeeds.",
  signatures: () => [
    {
      text: "error reading cached NetConf in /var/lib/cni/sriov with name <id>-<interface>",
      pattern: /error reading cached ne/,
      confidence: 0.95,
    },
    {
      text: "failed to del rule table 500: no such file or directory",
      pattern: /failed to del rule table \d{1,6}/,
      confidence: 0.9,
    },
  ],
  logFragments: ["network", "cni", "rule table"],
  inSnapshot: "The plugin's private directory is not read; its error in the logs names the missing file.",
  versions: {
    since: "early sriov-cni and ib-sriov-cni, and spidernet's plugins",
    until: "not known; no report names a current release",
    ends: "Update the plugin.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Delete the pod by force, then stop and remove the sandbox.",
      "Check that the virtual function is back in the host's namespace.",
    ],
    gates: ["The sandbox is dead.", "The virtual function serves no other pod."],
  },
  byHand: [
    "Upgrade the plugin. Until then kubectl delete pod --force, then crictl rmp <id>.",
    "ip link on the host: the VF must be there again.",
  ],
  danger: "The virtual function may already serve another pod: check before resetting it.",
  links: [
    "k8snetworkplumbingwg/sriov-cni#178",
    "k8snetworkplumbingwg/sriov-cni#271",
    "spidernet-io/cni-plugins#47",
    "openshift/sriov-cni/pull/58",
  ],
};

export const ipamRecordMissing: ClassDefinition = {
  id: "ipam-record-missing",
  code: "B16",
  title: "The plugin fails to free what is already free",
  explanation:
    "The pod's address or port was given back earlier, and the plugin treats “there is nothing to free” as an error. The removal loops although nothing is left to remove.",
  mechanism:
    "A failed ADD had already undone its own work. DEL then finds no reservation and errors, against the CNI rule. The text holds no “not found”, so go-cni does not take it for success either.",
  signatures: () => [
    {
      text: "Error deallocating IP: Did not find reserved IP for container <id>",
      pattern:
        /did not find reserved ip for container|error deallocating ip|failed to release address ?\(no endpoint\)|workloadendpoint\S{0,60} \S{1,200} not found/,
      confidence: 0.95,
    },
    {
      text: "del cmd: failed to process delete request (aws-cni)",
      pattern: /del cmd: failed to process delete request/,
      confidence: 0.5,
      decides:
        "ipamd's log on this node (/var/log/aws-routed-eni/ipamd.log): it does not know the pod's address (this class), or it fails for a reason of its own.",
    },
    {
      text: "Failed to obtain OVS port for given connection: failed to find object from table Port",
      pattern: /failed to obtain ovs port for given connection|failed to find object from table port/,
      confidence: 0.95,
    },
  ],
  logFragments: [
    "network",
    "reserve",
    "ovs port",
    "delete request",
    "deallocating",
    "no endpoint",
    "workloadendpoint",
    "reserved ip",
    "table port",
  ],
  inSnapshot: "The reservation lives in the plugin's own store; its error in the logs is the proof.",
  versions: {
    since: "early whereabouts, and ovs-cni of 2021",
    until: "ovs-cni of 2023; of whereabouts the last release is not known",
    ends: "Update the plugin.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Delete the pod by force.",
      "With multus: move its cache for this id away as well.",
      "Stop and remove the sandbox, then sweep the other networks of the pod.",
    ],
    gates: ["The sandbox is dead."],
  },
  byHand: ["Upgrade the plugin. Until then kubectl delete pod --force, then crictl rmp <id>."],
  danger: "DEL does not reach the other networks of the pod either; their addresses must be released.",
  links: [
    "k8snetworkplumbingwg/whereabouts/pull/44",
    "k8snetworkplumbingwg/ovs-cni#159",
    "k8snetworkplumbingwg/ovs-cni#276",
  ],
};

const portmapContext =
  /portmap|plugin type=|sandbox|networkplugin cni|tear ?down|cni-(?:dn|sn|hostport|[0-9a-f]{20})|cni network/;

export const iptablesPortmap: ClassDefinition = {
  id: "iptables-portmap",
  code: "B17",
  sharedCause: true,
  title: "iptables fails under the port-mapping plugin",
  explanation:
    "The plugin that maps host ports cannot change the firewall: another process holds the iptables lock, the rule is already gone, or the program is not on the host at all. After a reboot hundreds of removals compete with kube-proxy for that lock.",
  mechanism:
    "portmap runs iptables for both families on every DEL, mapping or not. The lock is global to the node; parallel teardowns of one sandbox delete each other's chains.",
  signatures: () => [
    {
      text: "could not teardown ipv4 dnat|snat: running [<iptables> …]: exit status <n>: …",
      pattern: /could not (?:tear ?down|set ?up) ipv[46] (?:dnat|snat)|unable to (?:setup|create) (?:dnat|snat|chain)/,
      confidence: 0.95,
    },
    {
      text: "neither iptables nor ip6tables usable",
      pattern: /neither iptables nor ip6tables usable/,
      confidence: 0.95,
    },
    {
      text: "running [/usr/sbin/iptables … CNI-…]: exit status <n>: …",
      pattern: /running \[\S{0,120}ip6?tables\S{0,12} [^\]]{0,500}\]: exit status/,
      within: portmapContext,
      confidence: 0.85,
    },
    {
      text: "Another app is currently holding the xtables lock / iptables: Resource temporarily unavailable",
      pattern:
        /holding the xtables lock|iptables: resource temporarily unavailable|failed to locate iptables|could not initialize iptables|iptables: executable file not found/,
      within: portmapContext,
      unless: /kube-proxy|proxier|iptables-restore|ufw|fail2ban|firewalld|dockerd/,
      confidence: 0.85,
    },
  ],
  logFragments: ["iptables", "xtables", "ipv4 ", "chain", "ipv6 "],
  inSnapshot: "A lock that is held for moments is not part of a snapshot; the error in the logs is the proof.",
  versions: {
    since: "every release of portmap",
    until: "open",
    ends: "No upgrade. portmap with the nftables backend (plugins 1.6) does not use the lock of iptables.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Stop the sandboxes one at a time, with growing pauses.",
      "Missing program: report it; nothing else helps.",
    ],
    gates: ["The sandbox is dead.", "No other removal is under way."],
  },
  byHand: [
    "Wait; the kubelet's retries get through once the lock is free.",
    "Missing program: install iptables on the host.",
  ],
  danger: "Parallel removals make it worse. Never flush the nat table: it carries every service of the node.",
  links: [
    "containernetworking/plugins#418",
    "containernetworking/plugins#662",
    "containernetworking/plugins#510",
    "antrea-io/antrea#1499",
    "containerd/go-cni#60",
    "siderolabs/talos#374",
  ],
};

export const cniVersionMismatch: ClassDefinition = {
  id: "cni-version-mismatch",
  code: "B18",
  sharedCause: true,
  title: "CNI configuration and plugin disagree on the version",
  explanation:
    "The configuration asks for a CNI version that the plugin does not know, or names none at all. Pods may even start, and only their removal fails.",
  mechanism:
    "containerd 1.6 and later validate the version on DEL. An empty cniVersion, or one newer than the plugin, is an error there.",
  signatures: () => [
    {
      text: 'incompatible CNI versions; config is "<v>", plugin supports [<list>]',
      pattern: /incompatible cni versions/,
      confidence: 0.95,
    },
    {
      text: 'invalid version "": the version is empty',
      pattern: /invalid version ?: the version is empty/,
      confidence: 0.9,
    },
    {
      text: 'plugin <t> does not support config version "<v>"',
      pattern:
        /plugin \S{1,60} does not support config version|unsupported cni result version|could not parse prevresult|result type supports \[[^\]]{0,80}\] but/,
      confidence: 0.85,
    },
    {
      text: 'failed to get network "<net>" cached result: failed to convert cached result version …',
      pattern: /failed to convert cached result version/,
      confidence: 0.8,
    },
  ],
  logFragments: ["network", "plugin", "version is empty", "config version", "prevresult", "result type supports"],
  inSnapshot: "The version field of the configuration is not judged; the plugin's error in the logs is the proof.",
  versions: {
    since: "containerd 1.6.0",
    until: "containerd 1.6.3 for an empty cniVersion",
    ends: "Upgrade containerd to 1.6.4, which accepts the configurations that 1.6.0 to 1.6.3 refuse. A version that a plugin does not know stays an error in every release: update the plugin, or lower cniVersion.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Report the file and the field; change it manually."],
    gates: [],
  },
  byHand: ["Put a cniVersion into the configuration that every plugin of the chain supports, and update old plugins."],
  danger: "The change applies to every pod that starts later.",
  links: ["kubernetes/website/pull/34204", "linkerd/linkerd2#7247"],
};

export const interfaceNameAssigned: ClassDefinition = {
  id: "interface-name-assigned",
  code: "B31",
  title: "Removal refused: two networks claim the pod's interface",
  explanation:
    "Every removal of this sandbox fails before a plugin is called, because its list of networks names the same interface twice. The list was rebuilt from the configuration after the record of the creation was lost.",
  mechanism:
    "CRI-O's network library gives each network of a pod an interface name and refuses a name that is taken. For a removal after a restart the list is built again from cached results and the default network, and with multus in front the default network is in it twice.",
  signatures: () => [
    {
      text: 'failed to destroy network for pod sandbox k8s_<pod>_…(<id>): network "multus-cni-network" requested interface name "eth0" already assigned',
      pattern: /requested interface name \S{1,40} already assigned/,
      confidence: 0.96,
    },
  ],
  logFragments: ["requested interface name"],
  inSnapshot: "CRI-O's list of a pod's networks is not readable from outside.",
  versions: { since: "CRI-O with any multus before 3.6", until: "multus 3.5", ends: "Upgrade multus to 3.6." },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Upgrade multus to 3.6 or later.", "Restart crio, and let the kubelet stop the pod again."],
    gates: [],
  },
  byHand: ["multus --version; upgrade it, then systemctl restart crio."],
  danger: "Wiping the CNI cache of running pods makes their removal fail later.",
  links: ["k8snetworkplumbingwg/multus-cni#669", "k8snetworkplumbingwg/multus-cni#677"],
};
