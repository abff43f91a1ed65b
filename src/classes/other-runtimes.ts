import type { ClassDefinition } from "./failure-class.ts";

export const crioNameReserved: ClassDefinition = {
  id: "crio-name-reserved",
  code: "O1",
  title: "CRI-O: the name is reserved by a creation under way",
  explanation:
    "CRI-O is still busy with an earlier request for this pod or container and reports that. Usually the node is overloaded and it passes; newer versions name the stage at which the first request stands. If its own clean-up failed, the name stays until CRI-O is restarted.",
  mechanism:
    "CRI-O reserves the name for the request and keeps it while the request runs. After twenty failed clean-up attempts it stops and never releases it.",
  signatures: () => [
    {
      text: "error reserving pod name k8s_<pod>_<namespace>_<uid>_<n> for id <id>: name is reserved",
      pattern: /error reserving (?:pod|ctr|container) name/,
      confidence: 0.95,
    },
    {
      text: "kubelet may be retrying requests that are timing out in CRI-O due to system load. Currently at stage <s>: …",
      pattern: /kubelet may be retrying requests that are timing out in cri-o/,
      confidence: 0.95,
    },
    {
      text: "Creation of sandbox <n> not yet finished. Currently at stage <s>",
      pattern: /creation of (?:sandbox|container) \S{1,400} not yet finished/,
      confidence: 0.85,
    },
  ],
  logFragments: ["reserve", "sandbox", "network", "not yet finished"],
  inSnapshot: "CRI-O's reservations are in its memory only; the log names the stage.",
  versions: { since: "every CRI-O release", until: "open", ends: "No upgrade." },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Wait, and check the stage that the message names.", "Stuck after failed clean-ups: restart crio."],
    gates: ["The message has been repeating for more than ten minutes."],
  },
  byHand: ["Reduce the node's load; read the stage in the message. If nothing moves: systemctl restart crio."],
  danger: "A restart during a long creation throws its work away.",
  links: ["cri-o/cri-o#7010", "cri-o/cri-o#9097", "cri-o/cri-o#8884", "cri-o/cri-o#8596", "cri-o/cri-o#2984"],
};

export const crioAlreadyExists: ClassDefinition = {
  id: "crio-already-exists",
  code: "O2",
  title: "CRI-O: a sandbox of this name already exists",
  explanation:
    "An old CRI-O still knows a sandbox or container of this name from before a restart and cannot make a second. Today's CRI-O deletes what it cannot restore.",
  mechanism: "On start old releases reserved the names of sandboxes they then failed to load.",
  signatures: () => [
    {
      text: 'pod sandbox with name "<n>" already exists',
      pattern: /pod sandbox with name \S{1,400} already exists/,
      confidence: 0.95,
    },
    {
      text: 'conflict, name "<n>" already reserved for ctr "<id>"',
      pattern: /name \S{1,400} already reserved for (?:ctr|pod|container|sandbox)/,
      confidence: 0.95,
    },
  ],
  logFragments: ["sandbox", "reserve"],
  inSnapshot: "CRI-O's name index is in its memory only; the log names the holder.",
  versions: {
    since: "early CRI-O releases",
    until: "not known; no report names a supported release",
    ends: "Upgrade to a CRI-O that is supported.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the old sandbox over CRI, or restart crio.", "Upgrade CRI-O."],
    gates: ["The sandbox is dead."],
  },
  byHand: ["crictl pods --name <pod>: crictl rmp the dead one, or restart crio."],
  danger: "The holder may be running; check before removing it.",
  links: ["cri-o/cri-o#1742", "cri-o/cri-o#497"],
};

export const staleProcNetns: ClassDefinition = {
  id: "stale-proc-netns",
  code: "O3",
  title: "Namespace remembered by process number",
  explanation:
    "An old CRI-O or docker remembers a pod's network by the number of its first process. That process is gone, or worse, after a reboot the number belongs to another one, and taking the network down hits the wrong namespace, the host's included.",
  mechanism:
    "The namespace path was /proc/<pid>/ns/net. After a reboot the pid is reused; DEL then ran in the host's namespace and took lo down.",
  signatures: () => [
    {
      text: 'failed to Statfs "/proc/<pid>/ns/net": no such file or directory',
      pattern:
        /\/proc\/\d{1,8}\/ns\/net:? (?:no such file|unknown fs_magic)|(?:cannot open|failed to open netns|statfs) \/proc\/\d{1,8}\/ns\/net/,
      confidence: 0.8,
    },
    {
      text: 'NetworkPlugin cni failed on the status hook for pod "<pod>_<namespace>": …',
      pattern: /networkplugin \S{1,20} failed on the status hook/,
      level: "wrapper",
      confidence: 0.5,
      decides:
        "The pod: if it has just ended, dockershim only asked too late and nothing is wrong; if it should be running, its first process is gone.",
    },
  ],
  logFragments: ["cni", "/ns/net"],
  inSnapshot: "The runtimes concerned are no longer in use with a CRI that could be asked.",
  versions: {
    since: "early CRI-O, and docker with dockershim",
    until: "dockershim, removed in Kubernetes 1.24",
    ends: "Move to a CRI-O that is supported, or to containerd.",
  },
  treatment: { mode: "none", reversible: false, steps: [], gates: [] },
  byHand: ["Upgrade the runtime. Never run a plugin's DEL by hand with a /proc path."],
  danger: "A DEL with a reused process number runs in a foreign namespace and can cut the host off.",
  links: ["cri-o/cri-o#2849", "openshift/containernetworking-plugins/pull/16"],
};

export const dockerNameConflict: ClassDefinition = {
  id: "docker-name-conflict",
  code: "O4",
  title: "Docker: the pod's container name is in use",
  explanation:
    "Docker still has a container of the name that the kubelet needs, usually one from before a crash, or one that a clock step made the kubelet forget.",
  mechanism:
    "dockershim and cri-dockerd build the name from pod, uid and attempt; docker allows each name once, whether the container runs or not.",
  signatures: () => [
    {
      text: 'Conflict. The container name "/k8s_POD_…" is already in use by container "<id>". You have to remove (or rename) that container …',
      pattern: /container name \/?k8s_\S{1,400} is already in use by container/,
      confidence: 0.95,
    },
    {
      text: 'Conflict. The container name "…" is already in use by container "…" (names elided)',
      pattern: /the container name \S{1,400} is already in use by container/,
      within: /k8s_|sandbox|from runtime service|createcontainer/,
      confidence: 0.85,
    },
    {
      text: 'Unable to create pod sandbox due to conflict. Attempting to remove sandbox "<id>"',
      pattern: /unable to create pod sandbox due to conflict|failed to remove the conflicting container/,
      confidence: 0.9,
    },
  ],
  logFragments: ["sandbox", "container name", "conflicting container"],
  inSnapshot: "docker's own list is not read; cri-dockerd shows only what it manages.",
  versions: {
    since: "docker with dockershim or cri-dockerd",
    until: "open",
    ends: "No upgrade; containerd without docker does not have it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the dead container that holds the name."],
    gates: ["The container is not running."],
  },
  byHand: ["docker ps -a --filter name=<name>: docker rm it if it is not running; otherwise restart the kubelet only."],
  danger: "The holder may be the running container (see A4): never docker rm -f it unseen.",
  links: ["kubernetes/kubernetes#97153", "kubernetes/kubernetes#94557", "kubernetes/kubernetes/pull/36768"],
};

export const isuladNameConflict: ClassDefinition = {
  id: "isulad-name-conflict",
  code: "O5",
  title: "iSulad: the sandbox name is in use",
  explanation:
    "iSulad still has a sandbox of this name from before a power cut and refuses a second one. The kubelet asks for the same attempt because it does not see, or misjudges, the first.",
  mechanism: "iSulad keeps names across restarts; static pods keep their uid and so their name.",
  signatures: () => [
    {
      text: 'Conflict. The name "k8s_POD_…" is already in use by sandbox <id>. You have to remove that sandbox to be able to reuse that name.',
      pattern:
        /conflict\. the name \S{1,400} is already in use by|is already in use by sandbox|remove that sandbox to be able to reuse that name/,
      confidence: 0.85,
      decides: "The runtime is iSulad: this class. Another runtime and a kubelet with EventedPLEG: A9.",
    },
  ],
  logFragments: ["sandbox", "etcd"],
  inSnapshot: "unghost has not been tried on iSulad; what its CRI shows is read, but no finding is made.",
  versions: { since: "iSulad (openEuler)", until: "open", ends: "No upgrade is known." },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the dead sandbox that holds the name over CRI."],
    gates: ["The sandbox is dead: NotReady, no container running."],
  },
  byHand: ["crictl pods --no-trunc: crictl rmp the holder if it is NotReady; otherwise restart the kubelet only."],
  danger: "For static pods the holder may be the live API server or etcd.",
  links: ["kubernetes/kubernetes#126514"],
};

export const crioHalfRemoved: ClassDefinition = {
  id: "crio-half-removed",
  code: "O6",
  title: "CRI-O: half removed, and no removal gets past that",
  explanation:
    "A sandbox was removed without being stopped before, and its network could not be taken down. CRI-O had deleted its containers by then; every later removal tries to delete them again, does not find them, and fails. The sandbox stays in the list until CRI-O is restarted, also when the network could be taken down again.",
  mechanism:
    "RemovePodSandbox deletes the containers, the sandbox's own included, takes their ids out of the index, and runs DEL last. When DEL fails the sandbox is kept, and the next removal fails on the id of its own container, which the index no longer has.",
  signatures: () => [
    {
      text: "failed to delete container k8s_POD_<pod>_<namespace>_<uid>_<n> in pod sandbox <id> from index: no such id: '<id>'",
      pattern: /failed to delete (?:infra )?container \S{1,400} in pod sandbox \S{1,80} from index: no such id/,
      confidence: 0.95,
    },
  ],
  logFragments: ["sandbox"],
  inSnapshot:
    "CRI-O lists it like any sandbox that is NotReady; what its index lacks shows only in the answer to a removal.",
  versions: {
    since: "CRI-O 1.22, and late releases of 1.20 and 1.21",
    until: "open",
    ends: "Upgrade to CRI-O 1.32.8, 1.33.4 or 1.34, where the second stop passes.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Repair what DEL fails on.", "Restart crio."],
    gates: ["DEL works again: other pods of the node are stopped without an error."],
  },
  byHand: [
    "Find out why DEL failed: the first removal's message in crio's log, which begins with “stop pod network”; unghost explain shows what it means.",
    "When DEL works again: crictl stopp <id>, with which most releases try DEL again, whatever they answer; then systemctl restart crio.",
    "unghost scan shows what the sandbox has left behind.",
  ],
  danger:
    "The restart makes CRI-O forget the sandbox without another DEL: before the cause is repaired it leaves addresses and rules behind. Never crictl rmp what crictl stopp could not stop.",
  links: ["cri-o/cri-o/pull/3164", "cri-o/cri-o/pull/291"],
};

export const criDockerdCheckpointMissing: ClassDefinition = {
  id: "cri-dockerd-checkpoint-missing",
  code: "O8",
  title: "cri-dockerd: no port mappings recorded for this pod",
  explanation:
    "cri-dockerd cannot stop the pod because it finds no record of its port mappings: the pod was made by the kubelet's built-in dockershim, which kept such records elsewhere, or the record was lost. Every removal fails alike.",
  mechanism:
    "Before a network is taken down, the port mappings are read from a checkpoint of the sandbox. Pods from before the move from dockershim (Kubernetes 1.23) to cri-dockerd (1.24) have none where cri-dockerd reads, and the missing key was an error.",
  signatures: () => [
    {
      text: 'networkPlugin cni failed to teardown pod "<pod>_<namespace>" network: could not retrieve port mappings: key is not found',
      pattern: /could not retrieve port mappings/,
      confidence: 0.97,
    },
  ],
  logFragments: ["port mappings"],
  inSnapshot: "cri-dockerd's checkpoints are not read.",
  versions: {
    since: "Kubernetes 1.24 with cri-dockerd, for pods from before",
    until: "cri-dockerd before its pull request 52 (2022)",
    ends: "Upgrade cri-dockerd.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Update cri-dockerd and restart it: stopping then works for pods without a checkpoint.",
      "Or drain the node and reboot it.",
    ],
    gates: ["The pod's containers are not running."],
  },
  byHand: [
    "cri-dockerd --version; update it and restart cri-docker.service.",
    "docker ps -a --filter name=k8s_POD_<pod>: docker rm it when it is not running.",
  ],
  danger: "docker rm -f by pattern also removes the containers of running pods.",
  links: ["Mirantis/cri-dockerd/pull/52", "rancher/rke#2998", "rancher/rancher#38270"],
};

export const crioRuntimeChanged: ClassDefinition = {
  id: "crio-runtime-changed",
  code: "O9",
  title: "CRI-O: the OCI runtime was changed under running pods",
  explanation:
    "CRI-O was restarted with another default runtime (crun instead of runc, or the other way round) while pods ran. It cannot read the state of those pods with the new one and deletes them from its list, while their processes may still run and hold ports and mounts.",
  mechanism:
    "Each container's state lies in the directory of the runtime that made it. At start CRI-O asks the configured runtime about it; with the old entry missing from crio.conf it answers that the runtime is not set up, and the sandbox is not restored.",
  signatures: () => [
    {
      text: 'Could not restore sandbox <id>: error reading sandbox state from disk "<id>": runtime not correctly setup',
      pattern: /runtime not correctly set ?up/,
      confidence: 0.95,
    },
    {
      text: "Could not restore sandbox <id>: …",
      pattern: /could not restore sandbox \S{1,80}/,
      level: "wrapper",
      confidence: 0.5,
      decides: "The text behind the id: “runtime not correctly setup” is a changed runtime, “no such file” a crash.",
    },
    {
      text: "Failed to update container state for <id>: … exit status 1, after a change of default_runtime",
      pattern: /failed to update container state for /,
      within: /crio|cri-o|runc|crun|sandbox|exit status|stdout: ,? ?stderr/,
      level: "symptom",
      confidence: 0.5,
      decides: "default_runtime in crio.conf was changed since the container was made.",
    },
  ],
  logFragments: ["restore sandbox", "correctly set", "update container state"],
  inSnapshot: "The runtime that made each container is not compared with the configured one.",
  versions: {
    since: "CRI-O 1.21",
    until: "open",
    ends: "No upgrade: drain the node before its OCI runtime changes. crun is the default from 1.31 on, so an upgrade may change it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Keep the old runtime in crio.conf beside the new one ([crio.runtime.runtimes.runc]), and restart crio: new pods use the default, old ones their own.",
      "Where sandboxes are forgotten already: drain the node and reboot it, which ends the processes that are left.",
    ],
    gates: ["The node is drained before the reboot."],
  },
  byHand: [
    "crio config | grep -A4 'runtime.runtimes'; runc list; crun list",
    "Before a change of default_runtime: drain the node, stop all pods, then change it.",
  ],
  danger:
    "Processes that CRI-O has forgotten still run: a second copy of a pod beside the first may corrupt its volume.",
  links: ["cri-o/cri-o#5569", "cri-o/cri-o#8705", "cri-o/cri-o/pull/6257", "kubernetes-sigs/kubespray#11907"],
};
