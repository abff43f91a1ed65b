import type { Operation } from "../../logs/operation.ts";
import { clusterTopics } from "./cluster-topics.ts";

/** A known trouble of pods or nodes that has nothing to do with stuck sandboxes. Never a finding about a node. */
export interface Topic {
  readonly id: string;
  /** One sentence: what it is. */
  readonly what: string;
  /** One sentence: where to go on. */
  readonly goTo: string;
  /** No trouble at all: what it names did not fail. */
  readonly isOrdinary?: true;
  /** A ghost may be its cause: the text does not show that. */
  readonly isSymptom?: true;
}

export interface KnownTopic extends Topic {
  /** Tested against a line after normalise(). */
  readonly pattern: RegExp;
  readonly unless?: RegExp;
  /** It is about a program, an image or a volume of the pod's own: a sandbox has none of these. */
  readonly ofContainers?: true;
}

const describePod = "kubectl describe pod";

/** The more specific first. */
const NODE_TOPICS: readonly KnownTopic[] = [
  {
    id: "plugin-ended",
    // libcni itself ends a plugin with SIGKILL.
    pattern: /netplugin failed with no error message: signal: terminated/,
    what: "A program ended the network plugin before it had answered (SIGTERM).",
    goTo: "unghost history shows whether a heal ended it because it hung; otherwise the runtime's service was being stopped, or somebody ended it. Kubelet tries again.",
    isSymptom: true,
  },
  {
    id: "image-pull",
    pattern:
      /errimagepull|imagepullbackoff|back-off pulling image|fail(?:ed)? (?:to pull|pulling) (?:and unpack )?image|pullimage from image service failed|failed to get sandbox image|errimageneverpull|invalidimagename|failed to resolve (?:reference|image)|pull access denied|manifest (?:for \S{1,200} )?(?:unknown|not found)|toomanyrequests: |(?:initializing source|pinging container registry) \S|error pulling image|unable to pull sandbox image|pulling from host \S{1,200} failed|inspectfailed|couldnt parse image name|pull image \S{1,200} failed/,
    what: "An image cannot be pulled.",
    goTo: "Check the image's name, the registry's answer, pull secrets, proxy, DNS and rate limits; for the pause image the runtime's sandbox_image or pinned_images setting (crictl pull IMAGE on the node shows the same error).",
  },
  {
    id: "crash-loop",
    pattern: /crashloopbackoff|back-off (?:\S{1,12} )?restarting failed container/,
    what: "A container's program ends again and again.",
    goTo: "kubectl logs --previous shows why it ends.",
  },
  {
    id: "probe",
    pattern:
      /(?:readiness|liveness|startup) probe (?:failed|errored|warning)|probe (?:failed|errored)\b|execsync\b[^]{0,120}? failed|prober\.go:\d{1,5}\]/,
    what: "A probe of a container failed; its text is the container's own answer.",
    goTo: "Check the program's log, and the probe's timeout and delay.",
  },
  {
    id: "oom",
    pattern:
      /oomkilled|oom-kill:constraint|oom-killed|oom_score_adj|killed process \d{1,8}|memory cgroup out of memory|out of memory: kill|systemoom|invoked oom-killer/,
    unless: /multus-daemon|kube-multus/,
    what: "A process needed more memory than its limit or the node has, and the kernel ended it.",
    goTo: "Raise the container's memory limit, or give the node less to do (kubectl top pod, dmesg).",
  },
  {
    id: "gpu-runtime",
    pattern:
      /no runtime for \S{1,60} is configured|runtimeclass\S{0,40} \S{0,80}not found|runtime handler \S{1,60} not (?:found|supported)|nvidia-container-(?:cli|runtime)|no healthy devices present|unhealthy devices|unexpectedadmissionerror|failed to inject cdi devices|unresolvable cdi devices|could not select device driver|nvml(?: error)?: |failed to prepare dynamic resources|device plugin [^]{0,80}?(?:failed|not registered)|libnvidia-ml|no valid gpu/,
    what: "The runtime class or device that the pod asks for is missing on this node, often a GPU's.",
    goTo: "Check the node's runtime configuration for that handler, the device's driver and its device plugin's pod (for NVIDIA: the container toolkit).",
  },
  {
    id: "cloud-addresses-exhausted",
    pattern:
      /failed to assign an ip address to (?:the )?(?:container|pod)|not enough ips available|insufficientfreeaddresses|insufficientcidrblocks|allocateipconfig failed|failed to allocate (?:a )?private ip|per host block limit|no free ips?\b|no available ip addresses|range is full|no more (?:free )?ips?\b|no ip addresses? available in (?:subnet|vswitch|eni)|no ippool available|no more free affine blocks|no ips? currently available|no ipv[46] addresses available|no available (?:ip|address(?:es)?)\b|cant allocate more ip|assigned 0 out of \d{1,3} requested|ippool \S{0,80}(?:exhausted|is full)|subnet \S{1,80} (?:is full|has no (?:free|available))|there is no available ip|ip pool is exhausted|no available (?:ips?|eni)|noavailableaddress|failed to find any available subnet|eni \S{0,60}limit exceeded|unable to allocate ip\b[^]{0,160}?(?:exhausted|full|no )/,
    what: "The pool that gives out pod addresses has none left: a subnet, an interface's limit or an address pool. This is no leak that a node shows.",
    goTo: "Check the add-on that assigns addresses (aws-node, azure-cns, calico or cilium IPAM …): free addresses of the subnet or pool, addresses per interface and node; fewer pods a node or a larger range end it.",
  },
  {
    id: "network-agent-not-ready",
    pattern:
      /waiting for readinessindicatorfile|subnet\.env: no such file|calico is currently not ready to process requests|no ztunnel connection|unable to push cni event|not all (?:agents|components) (?:are )?ready|toomanyrequests|cilium api client timeout exceeded|plugin is not ready|ipamd? (?:is )?not (?:yet )?(?:ready|running)|waiting for (?:ipamd|aws-node)|ovn-kubernetes node network unavailable|no podcidr available|node \S{1,253} (?:pod cidr not assigned|has no podcidr)|failed to acquire lease: node \S{1,253} pod cidr not assigned|pod cidr not assigned/,
    what: "The network add-on's agent on this node has not finished its own start, or answers that it is not ready or too busy.",
    goTo: "Check that add-on's pod on this node and its log. Pods start automatically once it is Ready.",
    isSymptom: true,
  },
  {
    id: "runtime-down",
    pattern:
      /(?:containerd|crio|dockershim|cri-dockerd|docker|isulad|frakti)\.sock(?:: connect|[^]{0,40}?(?:no such file|connection refused|permission denied))|npipe\S{0,60}: (?:open|the system cannot)|cannot connect to the docker daemon|connect endpoint unix:\S{1,120}, make sure you are running as root/,
    unless: /multus\.sock/,
    what: "The container runtime itself does not answer on its socket.",
    goTo: "Check its service and log on the node: systemctl status containerd (or crio, docker, k3s), then journalctl --no-pager -l -u containerd.",
  },
  {
    id: "cgroup-driver",
    pattern:
      /expected cgroupspath to be of format|did not receive slice as parent|cgroup driver: \S{1,20} is different from|misconfiguration: kubelet cgroup driver|cgroup ?driver[^]{0,80}?(?:different|mismatch)/,
    what: "kubelet and the runtime use different cgroup drivers.",
    goTo: "Set SystemdCgroup (containerd) or cgroup_manager (CRI-O) and kubelet's cgroupDriver to the same, then restart both.",
  },
  {
    id: "cgroup-v1",
    pattern: /host using cgroup v1|cgroup v1 support is in maintenance|cgroup v1 support was removed/,
    what: "This kubelet refuses a host with cgroup v1.",
    goTo: "Boot the host with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or set failCgroupV1: false in kubelet's configuration for now.",
  },
  {
    id: "swap",
    pattern: /running with swap on is not supported|fail-swap-on/,
    what: "kubelet does not start because swap is on.",
    goTo: "swapoff -a and take it out of /etc/fstab, or configure kubelet's failSwapOn and memorySwap.",
  },
  {
    id: "resolv-conf",
    pattern:
      /resolv\.conf(?: failed|: no such file)|resolvconfpath \S{1,300} does not exist|dnsconfigforming|nameserver limits (?:were )?exceeded/,
    what: "A resolv.conf that kubelet or the runtime needs is missing, or has more name servers than a pod may have.",
    goTo: "Check kubelet's resolvConf setting and the host's resolver.",
  },
  {
    id: "dns",
    pattern:
      /plugin\/errors: \d \S|lookup \S{1,253}(?: on \S{1,60})?: (?:no such host|server misbehaving|i\/o timeout|temporary failure)|could not resolve host|temporary failure in name resolution|getaddrinfo (?:enotfound|eai_again)|nxdomain|cant (?:resolve|find) \S{1,253}(?:: (?:nxdomain|no answer|server fail|try again))?$|no servers could be reached/,
    what: "A name cannot be resolved.",
    goTo: "Check the DNS server that was asked: CoreDNS for pods, the host's resolver for kubelet and the runtime.",
  },
  {
    id: "webhook",
    pattern: /failed calling (?:admission )?webhook|failed to call webhook|admission webhook \S{1,253} denied/,
    what: "An admission webhook refuses the request or does not answer.",
    goTo: "Check the webhook's service and pods, or its failurePolicy (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations).",
  },
  {
    id: "quota",
    pattern: /exceeded quota|forbidden: (?:maximum|minimum) \S{1,40} usage per|failed quota: |limitrange/,
    what: "A ResourceQuota or LimitRange of the namespace refuses the pod.",
    goTo: "kubectl describe quota,limitrange in that namespace.",
  },
  {
    id: "pod-security",
    pattern:
      /violates podsecurity|unable to validate against any (?:pod security policy|security context constraint)|sysctlforbidden|forbidden sysctl/,
    what: "A security policy refuses the pod.",
    goTo: "Compare the pod's securityContext with the namespace's policy.",
  },
  {
    id: "scheduling",
    pattern:
      /failedscheduling|\d{1,5}\/\d{1,5} nodes are available|had (?:untolerated )?taint|preemption is not helpful|didnt match pods? (?:node affinity|anti-affinity)|unschedulable\b|volume node affinity conflict|outofcpu|outofmemory|outofpods|node didnt have enough resource/,
    what: "The pod has no node yet, or its node refuses it for want of resources.",
    goTo: `${describePod} names what each node lacks.`,
  },
  {
    id: "eviction",
    pattern:
      /the node was low on resource|evictionthresholdmet|eviction manager: (?:attempting|must evict|eviction|pod|pods|thresholds?|cannot evict|timed out|unexpected|no resources|unable to evict)\b|\bevicted\b|freediskspacefailed|imagegcfailed|failed to garbage collect required amount of images|(?:disk|memory|pid)pressure (?:true|$)|nodehas(?:disk|memory|pid)pressure|kubelethas(?:disk|memory|pid)pressure|kubelethasinsufficient\w{3,6}|had (?:taints? )?\{?node\.kubernetes\.io\/(?:disk|memory|pid)-pressure|node has insufficient memory|the node had condition: /,
    what: "The node is short of disk space or memory, and kubelet makes room.",
    goTo: "Free space on the node (images, logs, emptyDir volumes), and check what used it.",
  },
  {
    id: "missing-object",
    pattern:
      /(?:configmap|secret) \S{1,253} not found|network-attachment-definition\S{0,40} \S{1,200} (?:in namespace \S{1,80} )?not found|cannot find a network-attachment-definition|no networks found in \S|references non-existent (?:config|secret) key|couldnt find key \S{1,253} in (?:configmap|secret)|createcontainerconfigerror|object \S{1,253} not registered|failed to sync (?:configmap|secret) cache|failed to fetch token|serviceaccount \S{1,253} not found|persistentvolumeclaim \S{1,253} not found/,
    what: "The pod refers to a ConfigMap, Secret, token, claim or network attachment that does not exist or cannot be read.",
    goTo: `Check that it exists in the pod's namespace with that name and key; ${describePod} names it.`,
  },
  {
    id: "container-command",
    ofContainers: true,
    pattern:
      /unable to start container process: (?:error during container init: )?exec|exec:? \S{1,200}: (?:stat |executable file not found|permission denied|no such file)|exec format error|starting container process caused[^]{0,40}?exec|executable file not found in \$?path|exec user process caused|runcontainererror[^]{0,200}?exec/,
    unless: /fork\/exec|\/cni\/|iptables|plugin type=|netplugin|\/pause\b|apparmor_parser/,
    what: "The container's command cannot be executed: wrong path, no permission, or an image of another architecture.",
    goTo: "Check the image's entrypoint, its architecture, and the pod's command.",
  },
  {
    id: "container-mount",
    ofContainers: true,
    pattern:
      /error mounting \S{1,400} to rootfs at \S{1,300}: (?:[^:]{1,200}: )?(?:not a directory|no such file|permission denied|operation not permitted|read-only file system|create mountpoint|mkdir|change mount propagation|mount \S{1,300})|are you trying to mount a directory onto a file/,
    what: "A volume of the pod cannot be mounted into the container: the paths do not fit each other (a file over a directory, a missing subPath), or the kernel refuses it.",
    goTo: "Compare the container's volumeMounts (subPath, mountPath) with what is in the volume and in the image.",
  },
  {
    id: "csi-driver-not-registered",
    pattern:
      /not found in the list of registered csi drivers|csinode \S{1,253} does not contain driver|no csi driver named|failed to get csi client/,
    what: "The volume's CSI driver is not registered on this node.",
    goTo: "Check the driver's node pod on this node and its node-driver-registrar container. If the node crashed, unghost scan shows whether that pod itself is stuck.",
    isSymptom: true,
  },
  {
    id: "provisioning",
    pattern:
      /provisioningfailed|failed to provision volume|waitforfirstconsumer|storageclass\S{0,60} \S{1,120} not found|no persistent volumes available for this claim|waiting for a volume to be created|volumelimitexceeded|unbound immediate persistentvolumeclaims|pvc is not bound|persistentvolumeclaim is not bound/,
    what: "The volume has not been provisioned.",
    goTo: "kubectl describe pvc, and the log of the provisioner.",
  },
  {
    id: "mount-refused",
    pattern:
      /mount failed: exit status (?:1|2|6|32)\b|mount\.nfs: |mount\(2\): |mount error\(\d{1,3}\)|bad option; for several filesystems|unknown filesystem type|wrong fs type|access denied by server while mounting|no route to host[^]{0,80}?mount|already mounted or mount point busy|fsck found errors|structure needs cleaning|hostpath type check failed/,
    unless: /\bumount\b|unmount/,
    what: "The file system or its server refuses the mount.",
    goTo: "Mount it by hand on the node with the same options: server, export, credentials, file system tools, network.",
  },
  {
    id: "mount-waits",
    pattern:
      /unmounted volumes=\[[^\]]{0,300}\][^]{0,300}?(?:timed out waiting for the condition|context deadline exceeded|timeout expired)|timeout expired waiting for volumes to attach/,
    what: "kubelet waited too long for a volume to be mounted; this line does not contain the reason.",
    goTo: `Another event of the same pod has it (FailedAttachVolume or MountVolume…): ${describePod}, or explain those lines.`,
    isSymptom: true,
  },
  {
    id: "disk",
    pattern:
      /no space left on device|disk quota exceeded|read-only file system|input\/output error|structure needs cleaning/,
    unless: /inotify|\/sys\/fs\/cgroup|namespace failed/,
    what: "The disk below is full, read-only or damaged.",
    goTo: "df -h and df -i on the node, then dmesg for errors of the disk or its file system.",
  },
  {
    id: "gone-already",
    pattern:
      /an error occurred when try to find (?:sandbox|container)|code = notfound desc = (?:could not find (?:sandbox|container)|container with id)|no such container: [0-9a-f]{12}|error finding container [0-9a-f]{12}|failed to create existing container: |cleanup warnings time=/,
    what: "What was asked for is already gone: kubelet, cadvisor or an operator asked again after its removal.",
    goTo: "Nothing to do, unless it repeats for the same id for minutes: then restart kubelet.",
    isOrdinary: true,
  },
  {
    id: "ordinary-start",
    pattern:
      /failed to load cni during init|pleg was last seen active 2562047h|pleg has yet to be successful|container runtime status check may not have completed yet/,
    what: "Every containerd and every kubelet logs this once while it starts.",
    goTo: "Nothing to do, unless it repeats for minutes.",
    isOrdinary: true,
  },
  {
    id: "cloud-load-balancer",
    pattern: /syncloadbalancerfailed|error syncing load balancer|ensuring? load balancer/,
    what: "The cloud's load balancer of a Service cannot be set up.",
    goTo: "kubectl describe service, and the cloud controller's log.",
  },
  {
    id: "certificates",
    pattern:
      /x509: |tls: (?:failed to verify|bad certificate|unknown certificate|handshake failure|certificate required)|client certificate has expired|certificate has expired/,
    what: "A TLS certificate is not trusted or has expired.",
    goTo: "Check the clock, the certificate's dates and the CA that the client uses (kubeadm certs check-expiration; a stale kubeconfig).",
  },
  {
    id: "api-server",
    pattern:
      /the connection to the server \S{1,200} was refused|unable to connect to the server|failed to (?:list|watch) \*v\d|failed to ensure lease exists|error updating node status|unable to register node|etcdserver: |mvcc: database space exceeded|leaderelection lost|(?:^|\s)localhost:8080 was refused|the server was unable to return a response in the time allotted/,
    what: "The API server, or etcd behind it, does not answer or refuses.",
    goTo: "Check the API server's and etcd's pods or services on the control plane, their log, disk and certificates, and the address in the kubeconfig.",
  },
  {
    id: "node-not-ready",
    pattern:
      /kubelet stopped posting node status|nodestatusunknown|nodenotready\b|node is not ready\b|node \S{1,253} not found/,
    what: "The node is not Ready, or the cluster does not know it.",
    goTo: "Check kubelet on that node: systemctl status kubelet, then its log; unghost scan there shows whether a ghost is the reason.",
    isSymptom: true,
  },
  {
    id: "permissions",
    pattern:
      /is forbidden: user \S{1,300} cannot|forbidden: user \S{1,300} cannot|you must be logged in to the server|serviceaccount \S{1,253} cannot/,
    what: "A user or service account may not do that.",
    goTo: "kubectl auth can-i, and the roles bound to that account.",
  },
  {
    id: "address-in-use",
    pattern:
      /address already in use|port is already allocated|host port\S{0,20} (?:is )?(?:already )?(?:in use|taken)|didnt have free ports/,
    what: "Another process has that port.",
    goTo: "ss -ltnp on the node shows which.",
  },
  {
    id: "hook",
    pattern: /failedpoststarthook|failedprestophook|(?:poststart|prestop) ?hook\S{0,20} failed|exec lifecycle hook/,
    what: "A lifecycle hook of a container failed or took too long.",
    goTo: "Check the hook's command, and the pod's terminationGracePeriodSeconds.",
  },
  {
    id: "eviction-refused",
    pattern: /cannot evict pod as it would violate|disruption budget/,
    what: "A PodDisruptionBudget refuses the eviction.",
    goTo: "kubectl get pdb: bring more replicas up, or relax the budget.",
  },
  {
    id: "metrics",
    pattern:
      /failedgetresourcemetric|failedcomputemetricsreplicas|unable to fetch metrics|metrics not available|no metrics returned from resource metrics api/,
    what: "The autoscaler has no metrics.",
    goTo: "Check metrics-server and its APIService.",
  },
  {
    id: "unknown-kind",
    pattern: /no matches for kind \S|the server doesnt have a resource type|unable to recognize \S{1,300}: no matches/,
    what: "The cluster does not know that kind of object.",
    goTo: "Install its CRDs, or use the API version that this release serves (kubectl api-resources).",
  },
  {
    id: "device-busy-limit",
    pattern:
      /too many pods|node\S{0,80} exceed(?:s|ed)? max volume count|max volume count|maximum number of (?:data disks|volumes)|attachmentlimitexceeded|attach(?:ment)? limit/,
    what: "The node has as many pods or volumes as it may have.",
    goTo: "Raise the limit (kubelet's maxPods, the driver's volume limit), or add a node.",
  },
  {
    id: "network-policy",
    pattern:
      /curl: \(\d{1,3}\) |failed to connect to \S{1,120}\.svc\S{0,80} port|upstream connect error or disconnect|connection timed out after \d{1,8} milliseconds/,
    what: "A connection between programs fails.",
    goTo: "Check the Service's endpoints, the pods behind it, and network policies.",
  },
  {
    id: "node-clock",
    pattern: /clock skew detected|time has been changed|system clock (?:is )?(?:wrong|unsynchronized)/,
    what: "The node's clock is wrong or was set.",
    goTo: "timedatectl, and the node's time server.",
  },
];

/** Topics of a pod or node before those of a cluster, whose words are more general. */
const TOPICS: readonly KnownTopic[] = [...NODE_TOPICS, ...clusterTopics];

export function topicIn(text: string, operation?: Operation): Topic | undefined {
  const ofSandbox = operation === "create-sandbox" || operation === "cni-add";
  const found = TOPICS.find(
    ({ pattern, unless, ofContainers }) =>
      pattern.test(text) && unless?.test(text) !== true && !(ofContainers === true && ofSandbox),
  );
  if (found === undefined) return undefined;
  const { id, what, goTo, isOrdinary, isSymptom } = found;
  return { id, what, goTo, isOrdinary, isSymptom };
}
