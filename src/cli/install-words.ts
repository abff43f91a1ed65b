import { CRIO } from "../boot/install/drop-in.ts";
import type { HookSettings, Host } from "../boot/install/hook.ts";
import type { InstallPlan, State } from "../boot/install/plan.ts";
import { nixosModule, talosFiles } from "../boot/install/platforms.ts";

const MANAGERS = { systemd: "systemd", openrc: "OpenRC", nixos: "NixOS", talos: "Talos" } as const;

export function describeHost({ manager, services }: Host): string {
  if (manager === "talos") return "This host runs Talos.\n";
  const found = services.map(({ distribution, seenAt }) => `${distribution.title} (${seenAt})`).join(", ");
  const crio = services.some(({ distribution }) => distribution.name === "cri-o") ? `${CRIO}\n` : "";
  return `This host runs ${found} under ${MANAGERS[manager]}.\n${crio}`;
}

const STATE_WORDS = {
  new: "write",
  update: "update",
  unchanged: "unchanged",
  changed: "by hand",
  foreign: "not ours",
  obsolete: "remove",
} satisfies Record<State, string>;

/** The files to be written. A dry run shows their content. */
export function planLines(
  { manager }: Host,
  { entries, executable }: InstallPlan,
  { dryRun, execPath }: { readonly dryRun: boolean; readonly execPath: string },
): string {
  const line = (state: State, path: string, more = ""): string => `${STATE_WORDS[state].padEnd(10)} ${path}${more}\n`;
  const from = executable.state === "unchanged" ? "" : ` (a copy of ${execPath})`;
  const list = entries.map(({ state, path, entry }) => {
    return line(state, path, entry?.kind === "link" ? ` -> ${entry.target}` : "");
  });
  const texts = entries.flatMap(({ state, path, entry }) => {
    return dryRun && entry?.kind === "file" && state !== "unchanged" ? [`\n--- ${path}\n${entry.content}`] : [];
  });
  const enabled = manager === "openrc" ? "" : "Nothing is enabled: the runtime's unit pulls the others in.\n";
  return [line(executable.state, executable.path, from), ...list, enabled, ...texts].join("");
}

/** For hosts that are built from a configuration: what to add to it. */
export function printedInstead(host: Host, settings: HookSettings, version: string): string {
  const nothing = "Nothing was written. Put this into what the host is built from:\n\n";
  if (host.manager === "nixos") return nothing + nixosModule(host.services, settings);
  const { service, manifest, machineConfigPatch } = talosFiles(settings, version);
  return nothing + [manifest, service, machineConfigPatch].join("---\n");
}
