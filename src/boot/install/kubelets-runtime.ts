import type { DistributionName } from "./distribution.ts";
import type { HostFiles } from "./host-files.ts";

/** Files that say which socket the kubelet talks to, the most telling first. */
const TELLING = [
  "/var/lib/kubelet/kubeadm-flags.env",
  "/var/lib/kubelet/instance-config.yaml",
  "/var/lib/kubelet/config.yaml",
  "/etc/default/kubelet",
  "/etc/sysconfig/kubelet",
  "/etc/crictl.yaml",
];

/** Which of two runtimes on one host is the kubelet's; undefined when none of its files says. */
export function kubeletsRuntime(files: HostFiles): DistributionName | undefined {
  for (const path of TELLING) {
    const text = files.read(path) ?? "";
    if (/\/crio\/crio\.sock/.test(text)) return "cri-o";
    if (/\/containerd\/containerd\.sock/.test(text)) return "containerd";
  }
  return undefined;
}
