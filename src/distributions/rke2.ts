import { type Distribution, STANDARD_CNI, STANDARD_KUBELET_ROOT } from "./distribution.ts";

const DATA = "/var/lib/rancher/rke2";
const UNIT = { kubelets: [], before: "in-unit", dataDirs: [DATA] } as const;

/** Has the same socket as k3s, on which it is based. */
export const rke2: Distribution = {
  ...STANDARD_CNI,
  name: "rke2",
  sockets: ["/run/k3s/containerd/containerd.sock"],
  kubelet: {
    root: STANDARD_KUBELET_ROOT,
    kubeconfig: `${DATA}/agent/kubelet.kubeconfig`,
    servingCertificate: `${DATA}/agent/serving-kubelet.crt`,
  },
  units: ["rke2-server", "rke2-agent"],
  logFiles: [`${DATA}/agent/containerd/containerd.log`, `${DATA}/agent/logs/kubelet.log`],
  containerd: {
    root: `${DATA}/agent/containerd`,
    config: `${DATA}/agent/etc/containerd/config.toml`,
    binary: `${DATA}/bin/containerd`,
  },
  services: [
    { ...UNIT, name: "rke2-server", title: "rke2 (server)", service: "rke2-server" },
    { ...UNIT, name: "rke2-agent", title: "rke2 (agent)", service: "rke2-agent" },
  ],
};
