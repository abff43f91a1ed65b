import { join } from "node:path";
import { stringify } from "yaml";
import type { LabNode } from "../node.ts";
import { type Service, service } from "../service.ts";
import type { ControlPlane } from "./control-plane.ts";
import { kubeconfig } from "./kubeconfig.ts";
import type { ClusterTools } from "./tools.ts";

export const KUBELET_LOG = "/var/log/kubelet.log";
const KUBECONFIG = "/etc/kubernetes/kubelet.conf";
const CONFIG = "/var/lib/kubelet/config.yaml";
const PKI = "/var/lib/kubelet/pki";

/** Overrides of KubeletConfiguration. */
export type KubeletSettings = Readonly<Record<string, unknown>>;

/** The node's kubelet with node credentials only. Not started yet. */
export async function installKubelet(
  node: LabNode,
  ip: string,
  controlPlane: Pick<ControlPlane, "server" | "authority">,
  programs: ClusterTools,
  settings: KubeletSettings,
): Promise<Service> {
  const { authority, server } = controlPlane;
  const client = authority.issue(`/O=system:nodes/CN=system:node:${node.hostname}`);
  const serving = authority.issue(`/O=system:nodes/CN=system:node:${node.hostname}`, {
    san: `IP:${ip},DNS:${node.hostname}`,
  });
  await node.writeFile(KUBECONFIG, kubeconfig(server, authority.cert, client), 0o600);
  await node.writeFile("/etc/kubernetes/pki/ca.crt", authority.cert);
  await node.writeFile(`${PKI}/kubelet.crt`, serving.cert);
  await node.writeFile(`${PKI}/kubelet.key`, serving.key, 0o600);
  await node.writeFile(
    CONFIG,
    stringify({ ...KUBELET_CONFIGURATION, containerRuntimeEndpoint: `unix://${node.socketInNode}`, ...settings }),
  );
  const flags = [`--kubeconfig=${KUBECONFIG}`, `--config=${CONFIG}`, `--node-ip=${ip}`, "--v=2"];
  return service(node, "kubelet", KUBELET_LOG, [join(programs.kubernetesDir, "kubelet"), ...flags]);
}

export const KUBELET_CONFIGURATION = {
  kind: "KubeletConfiguration",
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: "/etc/kubernetes/pki/ca.crt" },
  },
  authorization: { mode: "Webhook" },
  tlsCertFile: `${PKI}/kubelet.crt`,
  tlsPrivateKeyFile: `${PKI}/kubelet.key`,
  cgroupDriver: "cgroupfs",
  failCgroupV1: false,
  failSwapOn: false,
  resolvConf: "",
  // The lab has no iptables.
  makeIPTablesUtilChains: false,
  // Disk and memory are the machine's; their usage must not affect a test.
  evictionHard: {
    "memory.available": "0%",
    "nodefs.available": "0%",
    "nodefs.inodesFree": "0%",
    "imagefs.available": "0%",
  },
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
  localStorageCapacityIsolation: false,
};

/** Kernel-wide settings that kubelet writes at its start. */
const KERNEL_SETTINGS = {
  "vm/overcommit_memory": 1,
  "vm/panic_on_oom": 0,
  "kernel/panic": 10,
  "kernel/panic_on_oops": 1,
  "kernel/keys/root_maxkeys": 1_000_000,
  "kernel/keys/root_maxbytes": 25_000_000,
};

/** kubelet writes its kernel settings into files of the node, so that the machine's are not changed. */
export function kernelSettingsScript(): string {
  const binds = Object.entries(KERNEL_SETTINGS).map(([setting, value]) => `bind ${setting} ${value}`);
  return `
    set -e
    bind() {
      file="/run/lab-kernel-settings/$1"
      mkdir -p "$(dirname "$file")"
      echo "$2" >"$file"
      mount --bind "$file" "/proc/sys/$1"
    }
    ${binds.join("\n")}
  `;
}

/**
 * On each boot, before kubelet starts. Mounts propagate as with systemd, so that volumes mounted by a CSI driver are
 * visible.
 */
export async function prepareForKubelet(node: LabNode): Promise<void> {
  await node.check(["sh", "-c", `${kernelSettingsScript()}\nmount --make-rshared /`]);
}
