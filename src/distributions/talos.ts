import { type Distribution, STANDARD_CNI, STANDARD_KUBELET_ROOT } from "./distribution.ts";

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
  containerd: { root: "/var/lib/containerd", config: "/etc/containerd/config.toml" },
  services: [],
};
