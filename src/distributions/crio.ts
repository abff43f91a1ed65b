import { type Distribution, STANDARD_CNI, STANDARD_KUBELET_ROOT } from "./distribution.ts";

/** One file, and drop-ins that override it in the order of their names. */
export const CRIO_CONFIG = { file: "/etc/crio/crio.conf", dropIns: "/etc/crio/crio.conf.d" } as const;

export const crio: Distribution = {
  ...STANDARD_CNI,
  name: "cri-o",
  sockets: ["/run/crio/crio.sock"],
  kubelet: { root: STANDARD_KUBELET_ROOT, kubeconfig: "/etc/kubernetes/kubelet.conf" },
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
