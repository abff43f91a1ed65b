import { type Distribution, STANDARD_KUBELET_ROOT } from "./distribution.ts";

const DATA = "/var/lib/rancher/k3s";
const UNIT = { kubelets: [], before: "in-unit", dataDirs: [DATA] } as const;

export const k3s: Distribution = {
  name: "k3s",
  sockets: ["/run/k3s/containerd/containerd.sock"],
  // With flannel. Without it, containerd's defaults apply.
  cniConfDir: `${DATA}/agent/etc/cni/net.d`,
  cniBinDirs: [`${DATA}/data/cni`, `${DATA}/data/current/bin`, "/opt/cni/bin"],
  kubelet: {
    root: STANDARD_KUBELET_ROOT,
    kubeconfig: `${DATA}/agent/kubelet.kubeconfig`,
    servingCertificate: `${DATA}/agent/serving-kubelet.crt`,
    embeddedIn: ["k3s-server", "k3s-agent", "k3s"],
  },
  units: ["k3s", "k3s-agent"],
  logFiles: [`${DATA}/agent/containerd/containerd.log`],
  containerd: {
    root: `${DATA}/agent/containerd`,
    config: `${DATA}/agent/etc/containerd/config.toml`,
    binary: `${DATA}/data/current/bin/containerd`,
  },
  services: [
    { ...UNIT, name: "k3s-server", title: "k3s (server)", service: "k3s" },
    { ...UNIT, name: "k3s-agent", title: "k3s (agent)", service: "k3s-agent" },
  ],
};
