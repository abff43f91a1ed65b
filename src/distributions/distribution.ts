/** Where one way of running Kubernetes keeps things. Defaults only: what runtime or kubelet report themselves comes first. */
export interface Distribution {
  readonly name: "k3s" | "rke2" | "k0s" | "microk8s" | "kubeadm" | "talos" | "cri-o" | "cri-dockerd";
  /** CRI sockets. Distributions that share one cannot be distinguished by it. */
  readonly sockets: readonly string[];
  readonly cniConfDir: string;
  readonly cniBinDirs: readonly string[];
  readonly kubelet: KubeletPlaces;
  /** systemd units that log about sandboxes. */
  readonly units: readonly string[];
  /** Logs of runtime and kubelet that are files of their own. */
  readonly logFiles: readonly string[];
  /** Missing where the runtime is not containerd. */
  readonly containerd?: ContainerdPlaces;
  /** Services that bring the runtime up, for the boot hook. */
  readonly services: readonly RuntimeUnit[];
}

export interface KubeletPlaces {
  readonly root: string;
  /** The kubelet's own credentials. */
  readonly kubeconfig?: string;
  /** What it shows on its port, where that is not below its certificate directory. */
  readonly servingCertificate?: string;
  /** Names of processes that have the kubelet inside, with the runtime at the first socket. */
  readonly embeddedIn?: readonly string[];
}

export interface ContainerdPlaces {
  readonly root: string;
  readonly config: string;
  /** Of a containerd that comes with the distribution: nothing else is started there. */
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

/** The service that brings the container runtime up, as far as the boot hook cares. */
export interface RuntimeUnit {
  readonly name: RuntimeUnitName;
  readonly title: string;
  /** As its packages name it. */
  readonly service: string;
  /** Services of the kubelet that should find the names free. */
  readonly kubelets: readonly string[];
  /**
   * - `in-unit`: the runtime is a child of the service, whose unit has no start timeout of its own (TimeoutStartSec=0), so
   *   that a step inside it takes no time from it.
   * - `own-unit`: the service has a start timeout. Our time must not count against it, so we bring our own unit.
   * - `after-only`: the runtime cleans up on its own before it listens.
   */
  readonly before: "in-unit" | "own-unit" | "after-only";
  /** Where the runtime keeps its records: they must be mounted before a scan. */
  readonly dataDirs: readonly string[];
}

/** Where most distributions have their network configurations and plugins. */
export const STANDARD_CNI = { cniConfDir: "/etc/cni/net.d", cniBinDirs: ["/opt/cni/bin"] } as const;

export const STANDARD_KUBELET_ROOT = "/var/lib/kubelet";
