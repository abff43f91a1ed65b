import { type Distribution, STANDARD_CNI } from "./distribution.ts";

const DATA = "/var/lib/k0s";
const UNIT = { kubelets: [], before: "in-unit", dataDirs: [DATA] } as const;

export const k0s: Distribution = {
  ...STANDARD_CNI,
  name: "k0s",
  sockets: ["/run/k0s/containerd.sock"],
  kubelet: {
    root: `${DATA}/kubelet`,
    kubeconfig: `${DATA}/kubelet.conf`,
    servingCertificate: `${DATA}/kubelet/pki/kubelet.crt`,
  },
  units: ["k0scontroller", "k0sworker"],
  logFiles: [],
  containerd: { root: `${DATA}/containerd`, config: "/etc/k0s/containerd.toml", binary: `${DATA}/bin/containerd` },
  services: [
    { ...UNIT, name: "k0s-controller", title: "k0s (controller)", service: "k0scontroller" },
    { ...UNIT, name: "k0s-worker", title: "k0s (worker)", service: "k0sworker" },
  ],
};
