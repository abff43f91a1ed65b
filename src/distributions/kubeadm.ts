import { type Distribution, STANDARD_CNI, STANDARD_KUBELET_ROOT } from "./distribution.ts";

export const kubeadmContainerd = { root: "/var/lib/containerd", config: "/etc/containerd/config.toml" } as const;

/** Separate containerd and kubelet services, as with kubeadm and most managed offerings. */
export const kubeadm: Distribution = {
  ...STANDARD_CNI,
  name: "kubeadm",
  sockets: ["/run/containerd/containerd.sock"],
  kubelet: { root: STANDARD_KUBELET_ROOT, kubeconfig: "/etc/kubernetes/kubelet.conf" },
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
