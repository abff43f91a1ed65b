/** Where each distribution keeps things. Defaults only: whatever the runtime or kubelet says of itself comes first. */
export interface Distribution {
  readonly name: string;
  readonly sockets: readonly string[];
  readonly cniConfDir: string;
  readonly cniBinDirs: readonly string[];
  readonly kubeletRoot: string;
  /** systemd units whose journal tells about sandboxes. */
  readonly units: readonly string[];
  /** Runtime logs that are files of their own instead. */
  readonly logFiles: readonly string[];
}

const STANDARD = {
  cniConfDir: "/etc/cni/net.d",
  cniBinDirs: ["/opt/cni/bin"],
  kubeletRoot: "/var/lib/kubelet",
  logFiles: [],
} as const;

/** In the order in which they are probed: embedded runtimes first, because their hosts may also run a plain containerd. */
export const distributions: readonly Distribution[] = [
  {
    ...STANDARD,
    name: "k3s or rke2",
    sockets: ["/run/k3s/containerd/containerd.sock"],
    cniConfDir: "/var/lib/rancher/k3s/agent/etc/cni/net.d",
    cniBinDirs: ["/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/current/bin", "/opt/cni/bin"],
    units: ["k3s", "k3s-agent", "rke2-server", "rke2-agent"],
    logFiles: [
      "/var/lib/rancher/k3s/agent/containerd/containerd.log",
      "/var/lib/rancher/rke2/agent/containerd/containerd.log",
      "/var/lib/rancher/rke2/agent/logs/kubelet.log",
    ],
  },
  {
    ...STANDARD,
    name: "k0s",
    sockets: ["/run/k0s/containerd.sock"],
    kubeletRoot: "/var/lib/k0s/kubelet",
    units: ["k0scontroller", "k0sworker"],
  },
  {
    ...STANDARD,
    name: "microk8s",
    sockets: ["/var/snap/microk8s/common/run/containerd.sock"],
    cniConfDir: "/var/snap/microk8s/current/args/cni-network",
    cniBinDirs: ["/var/snap/microk8s/current/opt/cni/bin", "/opt/cni/bin"],
    kubeletRoot: "/var/snap/microk8s/common/var/lib/kubelet",
    units: ["snap.microk8s.daemon-containerd", "snap.microk8s.daemon-kubelite"],
  },
  {
    ...STANDARD,
    name: "containerd",
    sockets: ["/run/containerd/containerd.sock"],
    units: ["containerd", "kubelet"],
    logFiles: ["/var/log/containerd.log", "/var/log/kubelet.log"],
  },
  {
    ...STANDARD,
    name: "CRI-O",
    sockets: ["/run/crio/crio.sock"],
    units: ["crio", "kubelet"],
  },
  {
    ...STANDARD,
    name: "cri-dockerd",
    sockets: ["/run/cri-dockerd.sock", "/run/k3s/cri-dockerd/cri-dockerd.sock"],
    units: ["docker", "cri-docker", "kubelet"],
  },
];

/** The distribution a socket belongs to; a socket in no known place is treated like plain containerd. */
export function distributionOf(socketPath: string): Distribution {
  const plain = socketPath.replace(/^\/var\/run\//, "/run/");
  const known = distributions.find((d) => d.sockets.some((socket) => plain.endsWith(socket)));
  return known ?? PLAIN_CONTAINERD;
}

const PLAIN_CONTAINERD: Distribution = {
  ...STANDARD,
  name: "containerd",
  sockets: [],
  units: ["containerd", "kubelet"],
  logFiles: ["/var/log/containerd.log", "/var/log/kubelet.log"],
};
