import { dirname } from "node:path";
import { PAUSE_IMAGE } from "./pause-image.ts";
import { RUNC_WRAPPER, tolerantRunc } from "./runc.ts";
import type { RuntimeOptions, RuntimeSetup } from "./runtime-setup.ts";
import { type ContainerdVersion, containerdRelease } from "./runtimes.ts";
import { ensureContainerd, type Tools } from "./tools.ts";

/** The part of the configuration that has the runtimes, by the version of its format. */
const CRI_PLUGIN = { 2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime" } as const;

export const CONTAINERD_SOCKET = "/run/containerd/containerd.sock";
export const CONTAINERD_LOG = "/var/log/containerd.log";
export const CONTAINERD_CONFIG = "/etc/containerd/config.toml";

const SNAPSHOTTERS_NOT_NEEDED = ["aufs", "btrfs", "zfs", "devmapper", "blockfile", "erofs"];

export async function containerdSetup(
  version: ContainerdVersion,
  tools: Tools,
  { snapshotter, cgroup, extraConfig = "" }: RuntimeOptions,
): Promise<RuntimeSetup> {
  const installed = await ensureContainerd(version);
  if (!installed.available) throw new Error(`no node with containerd ${version}: ${installed.reason}`);
  const { config: format } = containerdRelease(version);
  const plain = format === 2 ? version2Config(snapshotter) : version3Config(snapshotter);
  const runcOptions = `[plugins."${CRI_PLUGIN[format]}".containerd.runtimes.runc.options]\n  BinaryName = "${RUNC_WRAPPER}"\n`;
  const config = cgroup === "v2" ? plain + runcOptions : plain;
  return {
    name: "containerd",
    binDirs: [...new Set([installed.binDir, dirname(tools.containerd), dirname(tools.runc)])],
    command: ["containerd", "--config", CONTAINERD_CONFIG],
    socket: CONTAINERD_SOCKET,
    log: CONTAINERD_LOG,
    files: {
      [CONTAINERD_CONFIG]: config + extraConfig,
      ...(cgroup === "v2" ? { [RUNC_WRAPPER]: tolerantRunc(tools.runc, { controllers: true }) } : {}),
    },
    importImage: (archive) => ["ctr", "-n", "k8s.io", "images", "import", archive],
  };
}

function disabled(more: readonly string[]): string {
  const ids = [...SNAPSHOTTERS_NOT_NEEDED.map((name) => `io.containerd.snapshotter.v1.${name}`), ...more];
  return `disabled_plugins = ${JSON.stringify(ids)}`;
}

/**
 * containerd 1.x. restrict_oom_score_adj: where CAP_SYS_RESOURCE is missing, runc may not lower the score and dies with
 * "can't get final child's PID from pipe: EOF".
 */
function version2Config(snapshotter: string): string {
  return `version = 2
${disabled([])}
[debug]
  level = "info"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "${snapshotter}"
  default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`;
}

function version3Config(snapshotter: string): string {
  return `version = 3
${disabled(["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"])}
[debug]
  level = "info"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "${snapshotter}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
`;
}
