import { stringify } from "yaml";
import { KUBELET_CONFIGURATION, kernelSettingsScript } from "../cluster/kubelet.ts";
import { CONTAINERD_CONFIG, CONTAINERD_SOCKET } from "../runtime-config.ts";
import type { ContainerdVersion } from "../runtimes.ts";

/** The units that start containerd and kubelet, and their paths. */
export interface Layout {
  readonly name: string;
  /** The unit that starts the runtime. */
  readonly unit: string;
  readonly socket: string;
  readonly containerd: ContainerdVersion;
  /** How ctr is called. */
  readonly ctr: readonly string[];
  readonly containerdConfig?: string;
  files(containerdConfig: string): Readonly<Record<string, File>>;
  /** Link -> target. */
  readonly links: Readonly<Record<string, string>>;
}

interface File {
  readonly text: string;
  readonly mode?: number;
}

export const MANIFESTS = "/etc/kubernetes/manifests";
const KUBELET_CONFIG = "/var/lib/kubelet/config.yaml";
const WANTS = "/etc/systemd/system/multi-user.target.wants";
const KERNEL_SETTINGS = "/usr/local/lib/lab-kernel-settings";

/** Without an API server: only static pods. */
function kubeletConfiguration(socket: string): string {
  return stringify({
    ...KUBELET_CONFIGURATION,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    tlsCertFile: undefined,
    tlsPrivateKeyFile: undefined,
    enableServer: false,
    staticPodPath: MANIFESTS,
    fileCheckFrequency: "2s",
    containerRuntimeEndpoint: `unix://${socket}`,
  });
}

const LAB_UNIT = `[Unit]
Description=The lab keeps kubelet's kernel settings off the machine
Before=kubelet.service k3s.service containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh ${KERNEL_SETTINGS}
[Install]
WantedBy=multi-user.target
`;

/**
 * The lab's pods ignore SIGTERM, like every process 1 without a handler: a shutdown waits this long before it kills
 * them.
 */
const SHUTDOWN_CONFIG = "[Manager]\nDefaultTimeoutStopSec=10s\n";

const LAB_FILES: Readonly<Record<string, File>> = {
  "/etc/systemd/system.conf.d/lab.conf": { text: SHUTDOWN_CONFIG },
  [KERNEL_SETTINGS]: { text: kernelSettingsScript(), mode: 0o755 },
  "/etc/systemd/system/lab-kernel-settings.service": { text: LAB_UNIT },
};
const LAB_LINKS = { [`${WANTS}/lab-kernel-settings.service`]: "/etc/systemd/system/lab-kernel-settings.service" };

/** From the packages of Kubernetes. */
const KUBELET_UNIT = `[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet --config=${KUBELET_CONFIG}
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`;

/** containerd.service of Debian's package, and kubelet.service beside it. */
export function containerdLayout(kubelet: string): Layout {
  return {
    name: "containerd.service and kubelet.service",
    unit: "containerd.service",
    containerd: "1.6",
    socket: CONTAINERD_SOCKET,
    ctr: ["ctr"],
    files: (config) => ({
      ...LAB_FILES,
      [CONTAINERD_CONFIG]: { text: config },
      [KUBELET_CONFIG]: { text: kubeletConfiguration(CONTAINERD_SOCKET) },
      "/usr/lib/systemd/system/kubelet.service": { text: KUBELET_UNIT },
    }),
    links: {
      ...LAB_LINKS,
      [`${WANTS}/kubelet.service`]: "/usr/lib/systemd/system/kubelet.service",
      "/usr/bin/kubelet": kubelet,
    },
  };
}

/** From containerd's own releases. */
const CONTAINERD_UNIT = `[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target dbus.service

[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
`;

/** A manual install of containerd 2 on Debian: below /usr/local, with its own unit. `binDir` has its programs. */
export function containerd2Layout(kubelet: string, binDir: string): Layout {
  const debian = containerdLayout(kubelet);
  const programs = ["containerd", "containerd-shim-runc-v2", "ctr"];
  return {
    ...debian,
    name: "containerd.service of containerd 2",
    containerd: "2.3",
    files: (config) => ({
      ...debian.files(config),
      "/etc/systemd/system/containerd.service": { text: CONTAINERD_UNIT },
    }),
    links: {
      ...debian.links,
      ...Object.fromEntries(programs.map((name) => [`/usr/local/bin/${name}`, `${binDir}/${name}`])),
    },
  };
}

const K3S = "/var/lib/rancher/k3s";
const K3S_SOCKET = "/run/k3s/containerd/containerd.sock";
const K3S_CONFIG = `${K3S}/agent/etc/containerd/config.toml`;

/** From k3s' own installer. */
const K3S_UNIT = `[Unit]
Description=Lightweight Kubernetes
Documentation=https://k3s.io
Wants=network-online.target
After=network-online.target

[Install]
WantedBy=multi-user.target

[Service]
Type=notify
EnvironmentFile=-/etc/default/%N
EnvironmentFile=-/etc/sysconfig/%N
EnvironmentFile=-/etc/systemd/system/k3s.service.env
KillMode=process
Delegate=yes
User=root
LimitNOFILE=1048576
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
TimeoutStartSec=0
Restart=always
RestartSec=5s
ExecStart=/usr/local/bin/k3s server
`;

/**
 * A substitute of k3s: one service whose process starts containerd as its child and is ready when the cluster answers.
 * In the real one kubelet is part of the process itself.
 */
const K3S_PROGRAM = `#!/bin/sh
set -e
export PATH=${K3S}/data/current/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /run/k3s/containerd
containerd -c ${K3S_CONFIG} -a ${K3S_SOCKET} --state /run/k3s/containerd --root ${K3S}/agent/containerd &
containerd=$!
kubelet=
trap 'kill $containerd $kubelet; wait $containerd; exit 0' TERM
until ctr -a ${K3S_SOCKET} version >/dev/null 2>&1; do sleep 0.1; done
kubelet --config=${KUBELET_CONFIG} &
kubelet=$!
systemd-notify --ready --pid=parent
wait
`;

/** A unit named k3s, whose process starts containerd as its child. */
export function k3sLayout(kubelet: string): Layout {
  return {
    name: "k3s.service",
    unit: "k3s.service",
    containerd: "1.6",
    socket: K3S_SOCKET,
    ctr: ["ctr", "-a", K3S_SOCKET],
    files: (config) => ({
      ...LAB_FILES,
      [K3S_CONFIG]: { text: config },
      [KUBELET_CONFIG]: { text: kubeletConfiguration(K3S_SOCKET) },
      "/etc/systemd/system/k3s.service": { text: K3S_UNIT },
      "/usr/local/bin/k3s": { text: K3S_PROGRAM, mode: 0o755 },
    }),
    links: {
      ...LAB_LINKS,
      [`${WANTS}/k3s.service`]: "/etc/systemd/system/k3s.service",
      // k3s has its own containerd here.
      "/etc/systemd/system/containerd.service": "/dev/null",
      [`${K3S}/data/current/bin/containerd`]: "/usr/bin/containerd",
      [`${K3S}/data/current/bin/containerd-shim-runc-v2`]: "/usr/bin/containerd-shim-runc-v2",
      "/usr/bin/kubelet": kubelet,
    },
  };
}
