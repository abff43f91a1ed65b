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

export interface KubeletPlaces {
  readonly root: string;
  /** The kubelet's own credentials. */
  readonly kubeconfig?: string;
  /** Kubelet's serving certificate, if it is not in its certificate directory. */
  readonly servingCertificate?: string;
  /** Names of processes that embed the kubelet, with the runtime at the first socket. */
  readonly embeddedIn?: readonly string[];
}

export interface ContainerdPlaces {
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

/** The default directories of network configurations and plugins. */
export const STANDARD_CNI = { cniConfDir: "/etc/cni/net.d", cniBinDirs: ["/opt/cni/bin"] } as const;

export const STANDARD_KUBELET_ROOT = "/var/lib/kubelet";
