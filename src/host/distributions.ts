/** The paths of one Kubernetes distribution. Defaults only: values reported by runtime or kubelet take precedence. */
export interface Distribution {
  readonly name: "k3s" | "rke2" | "k0s" | "microk8s" | "kubeadm" | "talos" | "cri-o" | "cri-dockerd";
  /** CRI sockets. Distributions with the same socket cannot be distinguished by it. */
  readonly sockets: readonly string[];
  readonly cniConfDir: string;
  readonly cniBinDirs: readonly string[];
  readonly kubelet: KubeletPlaces;
  /** systemd units that log about sandboxes. */
  readonly units: readonly string[];
  /** Log files of runtime and kubelet. */
  readonly logFiles: readonly string[];
  /** Missing if the runtime is not containerd. */
  readonly containerd?: ContainerdPlaces;
  /** Services that start the runtime, for the boot hook. */
  readonly services: readonly RuntimeUnit[];
}

interface KubeletPlaces {
  readonly root: string;
  /** The kubelet's own credentials. */
  readonly kubeconfig?: string;
  /** Kubelet's serving certificate, if it is not in its certificate directory. */
  readonly servingCertificate?: string;
  /** Names of processes that embed the kubelet, with the runtime at the first socket. */
  readonly embeddedIn?: readonly string[];
}

interface ContainerdPlaces {
  readonly root: string;
  readonly config: string;
  /** The containerd that the distribution ships: no other one is started. */
  readonly binary?: string;
}

export type RuntimeUnitName =
  | "k3s-server"
  | "k3s-agent"
  | "rke2-server"
  | "rke2-agent"
  | "k0s-controller"
  | "k0s-worker"
  | "microk8s"
  | "containerd"
  | "cri-o";

/** The service that starts the container runtime, for the boot hook. */
export interface RuntimeUnit {
  readonly name: RuntimeUnitName;
  readonly title: string;
  /** The name in its packages. */
  readonly service: string;
  /** Services of the kubelet that start after the heal. */
  readonly kubelets: readonly string[];
  /**
   * - `in-unit`: the runtime is a child of the service, whose unit has no start timeout (TimeoutStartSec=0), so a step
   *   inside the unit is allowed.
   * - `own-unit`: the service has a start timeout. Our time must not count against it, so the hook has a separate unit.
   * - `after-only`: the runtime cleans up on its own before it listens.
   */
  readonly before: "in-unit" | "own-unit" | "after-only";
  /** The runtime's data directories: they must be mounted before a scan. */
  readonly dataDirs: readonly string[];
}

/** The CNI guard's directory on the runtime's search path. What is in it runs the real plugins. */
export const CNI_GUARD_BIN_DIR = "/opt/unghost/cni/bin";
/** The directories of the real plugins, one a line, where the runtime may name the guard's alone. */
export const CNI_GUARD_PLUGIN_DIRS = "/opt/unghost/cni/plugin-dirs";
/** Its records and its queue. */
export const CNI_GUARD_STATE_DIR = "/var/lib/unghost/cni";

/** The default directories of network configurations and plugins. */
const STANDARD_CNI = { cniConfDir: "/etc/cni/net.d", cniBinDirs: ["/opt/cni/bin"] } as const;

const STANDARD_KUBELET_ROOT = "/var/lib/kubelet";

/** A node of kubeadm, whatever its runtime. */
const STANDARD = {
  ...STANDARD_CNI,
  kubelet: { root: STANDARD_KUBELET_ROOT, kubeconfig: "/etc/kubernetes/kubelet.conf" },
} as const;

/** Alone, and as `k3s --docker` starts it. */
const criDockerd: Distribution = {
  ...STANDARD,
  name: "cri-dockerd",
  sockets: ["/run/cri-dockerd.sock", "/run/k3s/cri-dockerd/cri-dockerd.sock"],
  units: ["docker", "cri-docker", "kubelet"],
  logFiles: [],
  services: [],
};

/** One file, and drop-ins that override it in the order of their names. */
export const CRIO_CONFIG = { file: "/etc/crio/crio.conf", dropIns: "/etc/crio/crio.conf.d" } as const;

export const crio: Distribution = {
  ...STANDARD,
  name: "cri-o",
  sockets: ["/run/crio/crio.sock"],
  units: ["crio", "kubelet"],
  logFiles: ["/var/log/crio/crio.log", "/var/log/kubelet.log"],
  services: [
    {
      name: "cri-o",
      title: "CRI-O with a kubelet",
      service: "crio",
      kubelets: ["kubelet"],
      before: "after-only",
      dataDirs: ["/var/lib/containers"],
    },
  ],
};

const K0S_DATA = "/var/lib/k0s";
const K0S_UNIT = { kubelets: [], before: "in-unit", dataDirs: [K0S_DATA] } as const;

export const k0s: Distribution = {
  ...STANDARD_CNI,
  name: "k0s",
  sockets: ["/run/k0s/containerd.sock"],
  kubelet: {
    root: `${K0S_DATA}/kubelet`,
    kubeconfig: `${K0S_DATA}/kubelet.conf`,
    servingCertificate: `${K0S_DATA}/kubelet/pki/kubelet.crt`,
  },
  units: ["k0scontroller", "k0sworker"],
  logFiles: [],
  containerd: {
    root: `${K0S_DATA}/containerd`,
    config: "/etc/k0s/containerd.toml",
    binary: `${K0S_DATA}/bin/containerd`,
  },
  services: [
    { ...K0S_UNIT, name: "k0s-controller", title: "k0s (controller)", service: "k0scontroller" },
    { ...K0S_UNIT, name: "k0s-worker", title: "k0s (worker)", service: "k0sworker" },
  ],
};

export const K3S_DATA = "/var/lib/rancher/k3s";
const K3S_UNIT = { kubelets: [], before: "in-unit", dataDirs: [K3S_DATA] } as const;

export const k3s: Distribution = {
  name: "k3s",
  sockets: ["/run/k3s/containerd/containerd.sock"],
  // With flannel. Without it, containerd's defaults apply.
  cniConfDir: `${K3S_DATA}/agent/etc/cni/net.d`,
  cniBinDirs: [`${K3S_DATA}/data/cni`, `${K3S_DATA}/data/current/bin`, "/opt/cni/bin"],
  kubelet: {
    root: STANDARD_KUBELET_ROOT,
    kubeconfig: `${K3S_DATA}/agent/kubelet.kubeconfig`,
    servingCertificate: `${K3S_DATA}/agent/serving-kubelet.crt`,
    embeddedIn: ["k3s-server", "k3s-agent", "k3s"],
  },
  units: ["k3s", "k3s-agent"],
  logFiles: [`${K3S_DATA}/agent/containerd/containerd.log`],
  containerd: {
    root: `${K3S_DATA}/agent/containerd`,
    config: `${K3S_DATA}/agent/etc/containerd/config.toml`,
    binary: `${K3S_DATA}/data/current/bin/containerd`,
  },
  services: [
    { ...K3S_UNIT, name: "k3s-server", title: "k3s (server)", service: "k3s" },
    { ...K3S_UNIT, name: "k3s-agent", title: "k3s (agent)", service: "k3s-agent" },
  ],
};

const kubeadmContainerd = { root: "/var/lib/containerd", config: "/etc/containerd/config.toml" } as const;

/** Separate containerd and kubelet services, as with kubeadm and most managed offerings. */
export const kubeadm: Distribution = {
  ...STANDARD,
  name: "kubeadm",
  sockets: ["/run/containerd/containerd.sock"],
  units: ["containerd", "kubelet"],
  logFiles: ["/var/log/containerd.log", "/var/log/kubelet.log"],
  containerd: kubeadmContainerd,
  services: [
    {
      name: "containerd",
      title: "containerd with a kubelet",
      service: "containerd",
      kubelets: ["kubelet"],
      before: "own-unit",
      dataDirs: ["/var/lib/containerd"],
    },
  ],
};

const COMMON = "/var/snap/microk8s/common";
const CURRENT = "/var/snap/microk8s/current";
const RUNTIME_UNIT = "snap.microk8s.daemon-containerd";
const KUBELET_UNIT = "snap.microk8s.daemon-kubelite";

export const microk8s: Distribution = {
  name: "microk8s",
  sockets: [`${COMMON}/run/containerd.sock`],
  cniConfDir: `${CURRENT}/args/cni-network`,
  cniBinDirs: [`${CURRENT}/opt/cni/bin`, "/opt/cni/bin"],
  kubelet: {
    root: `${COMMON}/var/lib/kubelet`,
    kubeconfig: `${CURRENT}/credentials/kubelet.config`,
    servingCertificate: `${CURRENT}/certs/kubelet.crt`,
    embeddedIn: ["kubelite"],
  },
  units: [RUNTIME_UNIT, KUBELET_UNIT],
  logFiles: [],
  containerd: {
    root: `${COMMON}/var/lib/containerd`,
    config: `${CURRENT}/args/containerd.toml`,
    binary: "/snap/microk8s/current/bin/containerd",
  },
  services: [
    {
      name: "microk8s",
      title: "MicroK8s",
      service: RUNTIME_UNIT,
      kubelets: [KUBELET_UNIT],
      before: "own-unit",
      dataDirs: ["/var/snap/microk8s"],
    },
  ],
};

const RKE2_DATA = "/var/lib/rancher/rke2";
const RKE2_UNIT = { kubelets: [], before: "in-unit", dataDirs: [RKE2_DATA] } as const;

/** Has the same socket as k3s, on which it is based. */
export const rke2: Distribution = {
  ...STANDARD_CNI,
  name: "rke2",
  sockets: ["/run/k3s/containerd/containerd.sock"],
  kubelet: {
    root: STANDARD_KUBELET_ROOT,
    kubeconfig: `${RKE2_DATA}/agent/kubelet.kubeconfig`,
    servingCertificate: `${RKE2_DATA}/agent/serving-kubelet.crt`,
  },
  units: ["rke2-server", "rke2-agent"],
  logFiles: [`${RKE2_DATA}/agent/containerd/containerd.log`, `${RKE2_DATA}/agent/logs/kubelet.log`],
  containerd: {
    root: `${RKE2_DATA}/agent/containerd`,
    config: `${RKE2_DATA}/agent/etc/containerd/config.toml`,
    binary: `${RKE2_DATA}/bin/containerd`,
  },
  services: [
    { ...RKE2_UNIT, name: "rke2-server", title: "rke2 (server)", service: "rke2-server" },
    { ...RKE2_UNIT, name: "rke2-agent", title: "rke2 (agent)", service: "rke2-agent" },
  ],
};

/** Talos runs kubelet as a container of its system containerd, with its own mount namespace, in this cgroup. */
export const TALOS_KUBELET_CGROUP = "podruntime/kubelet";

/** No shell, no systemd, a read-only root: the boot hook comes as a system extension. */
export const talos: Distribution = {
  ...STANDARD_CNI,
  name: "talos",
  sockets: ["/run/containerd/containerd.sock"],
  kubelet: { root: STANDARD_KUBELET_ROOT, kubeconfig: "/etc/kubernetes/kubeconfig-kubelet" },
  units: [],
  logFiles: [],
  containerd: kubeadmContainerd,
  services: [],
};

/** Embedded runtimes first, because their hosts may also run a plain containerd for something else. */
const DISTRIBUTIONS: readonly Distribution[] = [k3s, rke2, k0s, microk8s, kubeadm, talos, crio, criDockerd];

/** In the order of probing. */
export const SOCKETS = unique(DISTRIBUTIONS.flatMap(({ sockets }) => sockets));

export const CNI_CONF_DIRS = unique(DISTRIBUTIONS.map(({ cniConfDir }) => cniConfDir));

/** A machine without any of them is no node. */
export const NODE_DIRS = unique([...DISTRIBUTIONS.map(({ kubelet }) => kubelet.root), ...CNI_CONF_DIRS]);

/** Those of a separate kubelet first. */
export const KUBELET_KUBECONFIGS = unique(
  [kubeadm, talos, ...DISTRIBUTIONS].flatMap(({ kubelet }) => kubelet.kubeconfig ?? []),
);

/** Where kubelet has the authority of the API server that it talks to. */
export const CLUSTER_AUTHORITIES = [
  "/etc/kubernetes/pki/ca.crt",
  "/etc/kubernetes/kubelet.conf",
  `${K3S_DATA}/agent/server-ca.crt`,
  `${RKE2_DATA}/agent/server-ca.crt`,
] as const;

/** Of the processes that start their own containerd and kubelet. */
export const OWN_CONFIGS = ["/etc/rancher/k3s/config.yaml", "/etc/rancher/rke2/config.yaml"] as const;

/** Where the operator sets what a distribution's own containerd reads. */
export const CONTAINERD_SET_BY_OPERATOR: readonly (readonly [socketDir: string, place: string])[] = [
  ["/run/k0s/", "a drop-in in /etc/k0s/containerd.d"],
  ["/var/snap/microk8s/", `${CURRENT}/args/containerd-template.toml`],
];

export const SERVING_CERTIFICATES = unique(DISTRIBUTIONS.flatMap(({ kubelet }) => kubelet.servingCertificate ?? []));

/** Processes with an embedded kubelet, by name, and the socket of the runtime that they start. */
export const EMBEDDED_KUBELETS: ReadonlyMap<string, string> = new Map(
  DISTRIBUTIONS.flatMap(({ kubelet, sockets: [socket = ""] }) =>
    (kubelet.embeddedIn ?? []).map((name): [string, string] => [name, socket]),
  ),
);

/** journalctl ignores units that do not exist. */
export const UNITS = unique(DISTRIBUTIONS.flatMap(({ units }) => units));

export const CONTAINERD_ROOTS = unique(DISTRIBUTIONS.flatMap(({ containerd }) => containerd?.root ?? []));

/** The containerd of a node whose distribution ships none, and the unit that starts it. */
export const PLAIN_CONTAINERD = { service: "containerd", ...kubeadmContainerd } as const;

/** Distributions that ship their own containerd. */
export const OWN_CONTAINERDS = DISTRIBUTIONS.flatMap(({ name, containerd }) =>
  containerd?.binary === undefined ? [] : [{ name, ...containerd, binary: containerd.binary }],
);

export const RUNTIME_UNITS: readonly RuntimeUnit[] = DISTRIBUTIONS.flatMap(({ services }) => services);

export type SocketPlaces = ReturnType<typeof placesAt>;

/**
 * The merged values of the distributions with the same socket; for single values, the first one. A socket at an unknown
 * path is treated like that of a plain containerd.
 */
export function placesAt(socketPath: string) {
  const plain = socketPath.replace(/^\/var\/run\//, "/run/");
  const known = DISTRIBUTIONS.filter(({ sockets }) => sockets.some((socket) => plain.endsWith(socket)));
  const [first = kubeadm] = known;
  const all = known.length === 0 ? [kubeadm] : known;
  return {
    names: all.map(({ name }) => name),
    cniConfDir: first.cniConfDir,
    cniBinDirs: unique(all.flatMap(({ cniBinDirs }) => cniBinDirs)),
    kubeletRoot: first.kubelet.root,
    units: unique(all.flatMap(({ units }) => units)),
    logFiles: unique(all.flatMap(({ logFiles }) => logFiles)),
  };
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}
