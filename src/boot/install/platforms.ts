import { AFTER_SECONDS, type HookSettings, type RuntimeService } from "./hook.ts";
import { afterUnit, beforeUnit, comment, dropIn, keepUnit, SWITCH_OFF, type Unit } from "./units.ts";

/** A placeholder for the executable until the text is Nix, because a store path would be quoted. */
const PROGRAM = "@unghost@";

/** The same units as a NixOS module: files that install wrote into /etc would be lost with the next rebuild. */
export function nixosModule(services: readonly RuntimeService[], settings: HookSettings): string {
  const called = { ...settings, program: PROGRAM };
  const ownUnit = services.some(({ distribution }) => distribution.before === "own-unit");
  const units = [
    ...(ownUnit ? [beforeUnit(services, called)] : []),
    afterUnit(services, called),
    ...(settings.keep === true ? [keepUnit(services, called)] : []),
  ];
  return `# unghost.nix, to be added to the imports of configuration.nix.
${comment("A ghost is a pod sandbox that died with the machine and still holds its name, so that its pod cannot start again.")}
${comment("nix-ld lets the executable run as it is: patching it would damage the program inside.")}
{ ... }:
let
  unghost = ${nixString(settings.program)}; # wherever you put it
in
{
  programs.nix-ld.enable = true;
${services.map((found) => service(found.service, dropIn(found, called))).join("")}${units
  .map((unit) => service(unit.name.replace(/\.service$/, ""), unit))
  .join("")}}
`;
}

function service(name: string, { text }: Unit): string {
  const [intro = "", ...sections] = text.split(/\n\n(?=\[)/);
  const why = intro.split("\n#\n").filter((paragraph) => paragraph !== SWITCH_OFF);
  const body = `${why.join("\n#\n").replace(/^/gm, "  ")}\n  systemd.services.${nixString(name)} = {\n`;
  return `\n${body}${sections.map(attributes).join("")}  };\n`;
}

/** A section of a unit. What it leaves out on purpose is not repeated here. */
function attributes(section: string): string {
  const [heading, ...lines] = (section.split("\n# Left out on purpose:")[0] ?? "").trimEnd().split("\n");
  // A separate option: it extends the service's module, where unitConfig would conflict.
  const [, wanted] = /^Wants=(.*)$/m.exec(section) ?? [];
  if (wanted !== undefined) return `    wants = [ ${wanted.split(" ").map(nixString).join(" ")} ];\n`;
  const set = lines.map((line) => {
    const [, key, value = ""] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === undefined) return `      ${line}\n`;
    // A list extends the service's module.
    return `      ${key} = ${key === "ExecStartPre" ? `[ ${nixString(value)} ]` : nixString(value)};\n`;
  });
  return `    ${heading === "[Unit]" ? "unitConfig" : "serviceConfig"} = {\n${set.join("")}    };\n`;
}

function nixString(text: string): string {
  const escaped = text.replace(/[\\"]/g, "\\$&").replace(/\$\{/g, "\\${");
  return `"${escaped.replaceAll(PROGRAM, `\${unghost}`)}"`;
}

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
