import type { KnownTopic } from "./topics.ts";

/** What people paste from kubectl, kubeadm and a node's first minutes. The more specific first. */
export const clusterTopics: readonly KnownTopic[] = [
  {
    id: "cri-disabled",
    pattern: /unknown service runtime\.v1(?:alpha2)?\.|\[error cri\]: container runtime is not running/,
    what: "The container runtime runs without its CRI service, is older than this kubelet needs, or does not run.",
    goTo: 'Check that "cri" is not in disabled_plugins of /etc/containerd/config.toml (packages of Docker put it there), then restart containerd, or upgrade it.',
  },
  {
    id: "kubelet-not-configured",
    pattern:
      /failed to load kubelet config|localhost:10248\/healthz|127\.0\.0\.1:10248: connect|kubelet-check\] it seems like the kubelet isnt running/,
    what: "kubelet does not run, or has no configuration yet: before kubeadm init or join has written it every start ends like this.",
    goTo: "journalctl --no-pager -l -u kubelet shows the first error of a start; kubeadm init or join writes /var/lib/kubelet/config.yaml.",
  },
  {
    id: "kernel-settings",
    pattern:
      /bridge-nf-call-ip6?tables|\[error fileavailable|ip_forward contents are not set|nf_conntrack_max: permission denied/,
    unless: /plugin type=/,
    what: "A kernel setting or module that the cluster needs is missing on this host.",
    goTo: "modprobe br_netfilter overlay, set net.bridge.bridge-nf-call-iptables and net.ipv4.ip_forward to 1, and make both permanent below /etc/modules-load.d and /etc/sysctl.d.",
  },
  {
    id: "conntrack-full",
    pattern: /nf_conntrack: (?:nf_conntrack: )?table full/,
    what: "The kernel's table of connections is full: it drops packets of every pod of the node.",
    goTo: "Compare net.netfilter.nf_conntrack_count with nf_conntrack_max, raise the latter, and find which program opens them.",
  },
  {
    id: "open-files",
    pattern: /(?<=(?:watch|kube|docker|contain|etcd|fork\/exec)[^]{0,130})too many open files/,
    unless: /pod ?sandbox|shim|inotify_/,
    what: "A program has no file handle or watch left.",
    goTo: "Check its limit (LimitNOFILE of its unit, ulimit -n) and fs.inotify.max_user_instances and max_user_watches of the node.",
  },
  {
    id: "run-as-root",
    pattern: /runasnonroot and image (?:will run as root|has non-numeric user)/,
    what: "The pod must not run as root, and its image names no other user by number.",
    goTo: "Set securityContext.runAsUser to a number other than 0, or USER with a number in the image.",
  },
  {
    id: "apparmor",
    pattern: /apparmor_parser|apparmor (?:enabled on|profile \S{1,120} (?:is )?not)|cannot enforce apparmor/,
    what: "AppArmor is on in the kernel, but its tools or the profile are missing on this node.",
    goTo: "Install the apparmor package (apparmor_parser), or load the profile that the pod names.",
  },
  {
    id: "exit-137",
    pattern: /(?:exit code|exitcode|exited with|exit status)\W{0,3}137\b/,
    unless: /oomkilled/,
    what: "The program was ended by SIGKILL (137 = 128 + 9): it used more memory than it may, or did not end within its grace period.",
    goTo: "kubectl describe pod shows OOMKilled as the reason if it was memory; dmesg on the node names the process.",
  },
  {
    id: "kubelet-unreachable",
    pattern:
      /error dialing backend|unable to upgrade connection: (?:unauthorized|pod does not exist)|:10250: (?:connect|i\/o timeout)/,
    what: "The API server cannot reach kubelet on that node (port 10250): logs, exec and port-forward need it.",
    goTo: "Check that kubelet runs there, the node's address in kubectl get nodes -o wide, and firewalls between them.",
  },
  {
    id: "not-running-yet",
    pattern:
      /is waiting to start: |unable to upgrade connection: container not found|cannot exec into a container in a completed pod|container \S{1,253} is not valid for pod/,
    what: "The container does not run, so it has no log and nothing can be executed in it.",
    goTo: "kubectl describe pod has the reason among its events; kubectl logs --previous has the log of its last run.",
    isSymptom: true,
  },
  {
    id: "no-such-object",
    pattern: /error from server \(notfound\): /,
    what: "That object does not exist in this namespace of this cluster.",
    goTo: "Check the name, the namespace (-n) and the context: kubectl config current-context.",
  },
  {
    id: "update-conflict",
    pattern: /the object has been modified\b|operation cannot be fulfilled on/,
    what: "Two writers changed one object at the same time; the second has to read it again, and does.",
    goTo: "Nothing to do, unless it repeats for minutes: then two controllers work against each other.",
    isOrdinary: true,
  },
  {
    id: "manifest",
    pattern:
      /error validating (?:data|\S{1,300}): |error parsing \S{1,300}\.ya?ml: |strict decoding error|error converting yaml to json/,
    what: "The manifest does not fit the API of this cluster.",
    goTo: "kubectl explain KIND.FIELD, and kubectl apply --dry-run=server.",
  },
  {
    id: "rollout",
    pattern: /exceeded its progress deadline|progressdeadlineexceeded|job has reached the specified backoff limit/,
    what: "A rollout or a job gave up because its pods do not become ready or fail.",
    goTo: "kubectl get pods of it, then kubectl describe pod and kubectl logs of one that is not ready.",
    isSymptom: true,
  },
  {
    id: "image-disk-capacity",
    pattern: /invalid capacity 0 on image filesystem|invaliddiskcapacity/,
    what: "Every kubelet reports this once while it starts, before it has measured the disk.",
    goTo: "Nothing to do, unless it repeats for minutes.",
    isOrdinary: true,
  },
  {
    id: "join",
    pattern:
      /couldnt validate the identity of the api server|jws-kubeconfig|token id \S{1,40} (?:is invalid|not found)|cluster-info\?timeout/,
    what: "The node cannot join: the API server does not answer at that address, or the token is no longer valid.",
    goTo: "kubeadm token create --print-join-command on the control plane, and check address, port 6443 and the clocks of both.",
  },
  {
    id: "sandbox-row",
    pattern: /(?:^|\s)[0-9a-f]{13} (?:about )?\w{1,6} \w{3,7} ago notready [a-z0-9]/,
    what: "A row of crictl pods: NotReady alone is no failure, because kubelet keeps the newest dead sandbox of a pod for its logs.",
    goTo: "unghost scan on that node names the sandboxes that block something.",
    isSymptom: true,
  },
  {
    id: "pod-state-row",
    pattern:
      /(?:^|\s)\d{1,3}\/\d{1,3} (?:pending|containercreating|terminating|unknown|init:\d|podinitializing|createcontainererror) \d/,
    unless: /warning|error:|failed/,
    what: "A row of kubectl get pods shows the state of a pod, not its cause.",
    goTo: "kubectl describe pod has the cause among its events; explain them. unghost scan on the pod's node shows whether a ghost is in its way.",
    isSymptom: true,
  },
];
