import { AFTER_SECONDS, type HookSettings } from "./hook-command.ts";

/** Which file goes where, for building a system extension. */
export interface TalosFiles {
  readonly service: string;
  readonly manifest: string;
  readonly machineConfigPatch: string;
}

/** Talos has no shell, no systemd and a read-only root: the hook is a system extension. */
export function talosFiles(
  { stateDir, bootArgs }: Pick<HookSettings, "stateDir" | "bootArgs">,
  version: string,
): TalosFiles {
  const args = ["boot", "--after", "--deadline", `${AFTER_SECONDS}s`, "--host-root", "/host", "--state-dir", stateDir];
  return {
    service: `# rootfs/usr/local/etc/containers/unghost.yaml
# The executable (built for musl, or with its libraries beside it) is rootfs/usr/local/lib/containers/unghost/unghost.
name: unghost
container:
  entrypoint: ./unghost
  args:
${[...args, ...bootArgs].map((word) => `    - ${JSON.stringify(word)}`).join("\n")}
  security:
    # Unmounting a dead pod's network namespace must reach the host.
    rootfsPropagation: rshared
  mounts:
    # Caches, leases, records and our own journal. /var/lib/cni outlives a reboot; /etc/cni does not.
${mount("/var", "rw", true)}
    # The runtime's socket and the network namespaces. The system's own containerd, in /system/run, stays out of reach.
${mount("/run", "rw", true)}
${mount("/etc/cni", "ro", false)}
${mount("/opt", "ro", false)}
    # Shims must be seen before a pod is called dead. An extension service cannot have the host's pid namespace (hostPID),
    # so it reads processes and signals none: hung plugins are ended by the agent, as a DaemonSet with hostPID: true.
${mount("/proc", "ro", false)}
${mount("/etc/os-release", "ro", false)}
depends:
  # There is no place before the runtime: extension services are containers themselves.
  - service: cri
  - path: /run/containerd/containerd.sock
  # Waits for the document below, so that the machine configuration switches it on and off.
  - configuration: true
# It exits 0 after its scan, healed or not: one run per boot.
restart: untilSuccess
`,
    manifest: `# manifest.yaml, beside rootfs/ in the extension's image
version: v1alpha1
metadata:
  name: unghost
  version: ${JSON.stringify(version)}
  author: unghost
  description: Heals ghost pod sandboxes after a power cut.
  compatibility:
    talos:
      # The first release with ExtensionServiceConfig.
      version: ">= v1.7.0"
`,
    machineConfigPatch: `# unghost-patch.yaml: talosctl patch machineconfig --patch @unghost-patch.yaml
# The extension itself comes with the installer image (Image Factory or imager), not with this patch.
apiVersion: v1alpha1
kind: ExtensionServiceConfig
name: unghost
environment:
  # Configured rather than detected: the system's own containerd must never be mistaken for it.
  - UNGHOST_RUNTIME_ENDPOINT=unix:///run/containerd/containerd.sock
`,
  };
}

function mount(path: string, access: "ro" | "rw", propagates: boolean): string {
  return `    - source: ${path}
      destination: /host${path}
      type: bind
      options: [rbind, ${propagates ? "rshared, " : ""}${access}]`;
}
