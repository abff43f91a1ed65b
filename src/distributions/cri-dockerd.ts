import { type Distribution, STANDARD_CNI, STANDARD_KUBELET_ROOT } from "./distribution.ts";

/** Alone, and as `k3s --docker` starts it. */
export const criDockerd: Distribution = {
  ...STANDARD_CNI,
  name: "cri-dockerd",
  sockets: ["/run/cri-dockerd.sock", "/run/k3s/cri-dockerd/cri-dockerd.sock"],
  kubelet: { root: STANDARD_KUBELET_ROOT, kubeconfig: "/etc/kubernetes/kubelet.conf" },
  units: ["docker", "cri-docker", "kubelet"],
  logFiles: [],
  services: [],
};
