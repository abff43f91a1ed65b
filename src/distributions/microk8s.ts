import type { Distribution } from "./distribution.ts";

const COMMON = "/var/snap/microk8s/common";
const CURRENT = "/var/snap/microk8s/current";
const RUNTIME_UNIT = "snap.microk8s.daemon-containerd";
const KUBELET_UNIT = "snap.microk8s.daemon-kubelite";

export const microk8s: Distribution = {
  name: "microk8s",
  sockets: [`${COMMON}/run/containerd.sock`],
  cniConfDir: `${CURRENT}/args/cni-network`,
  cniBinDirs: [`${CURRENT}/opt/cni/bin`, "/opt/cni/bin"],
  kubelet: {
    root: `${COMMON}/var/lib/kubelet`,
    kubeconfig: `${CURRENT}/credentials/kubelet.config`,
    servingCertificate: `${CURRENT}/certs/kubelet.crt`,
    embeddedIn: ["kubelite"],
  },
  units: [RUNTIME_UNIT, KUBELET_UNIT],
  logFiles: [],
  containerd: {
    root: `${COMMON}/var/lib/containerd`,
    config: `${CURRENT}/args/containerd.toml`,
    binary: "/snap/microk8s/current/bin/containerd",
  },
  services: [
    {
      name: "microk8s",
      title: "MicroK8s",
      service: RUNTIME_UNIT,
      kubelets: [KUBELET_UNIT],
      before: "own-unit",
      dataDirs: ["/var/snap/microk8s"],
    },
  ],
};
