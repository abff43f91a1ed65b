/** A way of running Kubernetes, as far as the hook cares: which service brings the container runtime up. */
export type DistributionName =
  | "k3s-server"
  | "k3s-agent"
  | "rke2-server"
  | "rke2-agent"
  | "k0s-controller"
  | "k0s-worker"
  | "microk8s"
  | "containerd"
  | "cri-o";

export interface Distribution {
  readonly name: DistributionName;
  readonly title: string;
  /** The service that starts the runtime, as its packages name it. */
  readonly service: string;
  /** Services of the kubelet that should find the names free. */
  readonly kubelets: readonly string[];
  /**
   * - `in-unit`: the runtime is a child of the service, whose unit has no start timeout of its own (TimeoutStartSec=0), so
   *   that a step inside it takes no time from it.
   * - `own-unit`: the service has a start timeout. Our time must not count against it, so we bring our own unit.
   * - `after-only`: the runtime cleans up by itself before it listens.
   */
  readonly before: "in-unit" | "own-unit" | "after-only";
  /** Where the runtime keeps its records: they must be mounted before we look. */
  readonly dataDirs: readonly string[];
}

const K3S = { kubelets: [], before: "in-unit", dataDirs: ["/var/lib/rancher/k3s"] } as const;
const RKE2 = { kubelets: [], before: "in-unit", dataDirs: ["/var/lib/rancher/rke2"] } as const;
const K0S = { kubelets: [], before: "in-unit", dataDirs: ["/var/lib/k0s"] } as const;

/** Embedded runtimes first: their hosts may run a plain containerd for something else. */
export const DISTRIBUTIONS: readonly Distribution[] = [
  { ...K3S, name: "k3s-server", title: "k3s (server)", service: "k3s" },
  { ...K3S, name: "k3s-agent", title: "k3s (agent)", service: "k3s-agent" },
  { ...RKE2, name: "rke2-server", title: "rke2 (server)", service: "rke2-server" },
  { ...RKE2, name: "rke2-agent", title: "rke2 (agent)", service: "rke2-agent" },
  { ...K0S, name: "k0s-controller", title: "k0s (controller)", service: "k0scontroller" },
  { ...K0S, name: "k0s-worker", title: "k0s (worker)", service: "k0sworker" },
  {
    name: "microk8s",
    title: "MicroK8s",
    service: "snap.microk8s.daemon-containerd",
    kubelets: ["snap.microk8s.daemon-kubelite"],
    before: "own-unit",
    dataDirs: ["/var/snap/microk8s"],
  },
  {
    name: "containerd",
    title: "containerd with a kubelet",
    service: "containerd",
    kubelets: ["kubelet"],
    before: "own-unit",
    dataDirs: ["/var/lib/containerd"],
  },
  {
    name: "cri-o",
    title: "CRI-O with a kubelet",
    service: "crio",
    kubelets: ["kubelet"],
    before: "after-only",
    dataDirs: ["/var/lib/containers"],
  },
];

export function distribution(name: DistributionName): Distribution {
  const found = DISTRIBUTIONS.find((known) => known.name === name);
  if (found === undefined) throw new Error(`no distribution is called ${name}`);
  return found;
}

/** A distribution's service as it was found on this host: k3s may be installed under another name. */
export interface RuntimeService {
  readonly distribution: Distribution;
  readonly service: string;
  /** The file that told. */
  readonly seenAt: string;
}

/** Who starts services here. NixOS and Talos are built from a description: nothing written to a running host stays. */
export type ServiceManager = "systemd" | "openrc" | "nixos" | "talos";

export interface Host {
  readonly manager: ServiceManager;
  /** At least one, except on Talos. */
  readonly services: readonly RuntimeService[];
}
