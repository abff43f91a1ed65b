import type { OwnNode } from "../agent/kube/withdraw.ts";
import { type RunCommand, runCommand, systemdRuns } from "../boot/install/apply.ts";
import type { HookSettings, Host } from "../boot/install/hook.ts";
import type { InstallPlan, State } from "../boot/install/plan.ts";
import { nixosModule, talosFiles } from "../boot/install/platforms.ts";
import { CRIO } from "../boot/install/units.ts";
import { clusterOpener } from "../kube/cluster-credentials.ts";
import { askYesNo, type Io } from "./io.ts";
import { type NodeSettings, resolveSettings } from "./settings/read.ts";
import type { NodeFlags } from "./settings/table.ts";

/** Common options of install and uninstall. */
export interface HookOptions {
  readonly hostRoot: string;
  readonly stateDir: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Do not ask. Without a terminal there is no question either: running the command is the consent. */
  readonly yes: boolean;
  readonly confirm: (question: string) => Promise<"yes" | "no">;
  /** Whether systemd manages `/`. */
  readonly systemdRuns: boolean;
  readonly runCommand: RunCommand;
}

export type HookIo = Pick<Io, "stdout" | "stderr" | "stdinIsTerminal" | "stdoutIsTerminal">;

export async function agreed(question: string, { yes, confirm }: HookOptions, io: HookIo): Promise<boolean> {
  if (yes || !io.stdinIsTerminal || !io.stdoutIsTerminal) return true;
  if ((await confirm(question)) === "yes") return true;
  io.stderr("Nothing was changed.\n");
  return false;
}

/** Returns whether one failed. On another root, or without systemd, they are only printed. */
export async function runCommands(
  commands: readonly (readonly string[])[],
  options: HookOptions,
  io: HookIo,
): Promise<boolean> {
  if (commands.length === 0) return false;
  const words = commands.map((command) => command.join(" "));
  if (options.hostRoot !== "/" || !options.systemdRuns) {
    io.stdout(`Where systemd runs this host, run: ${words.join(" && ")} (a boot does the same).\n`);
    return false;
  }
  let failed = false;
  for (const command of commands) {
    const complaint = await options.runCommand(command);
    if (complaint === undefined) continue;
    failed = true;
    io.stderr(`${command.join(" ")} failed: ${complaint}. The files are in place; run it again by hand.\n`);
  }
  return failed;
}

type Asked = NodeFlags & Partial<Pick<HookOptions, "force" | "dryRun" | "yes">>;

/** The real dependencies of install and uninstall. */
export async function hookOptions(asked: Asked, io: Io): Promise<HookOptions & { readonly settings: NodeSettings }> {
  const settings = await resolveSettings(asked, io);
  const { force = false, dryRun = false, yes = false } = asked;
  const confirm = (question: string) => askYesNo(question, io);
  const { hostRoot, stateDir } = settings;
  return { settings, hostRoot, stateDir, force, dryRun, yes, confirm, systemdRuns: systemdRuns(), runCommand };
}

/** Kubelet writes its node's name in lower case, whatever the host name is. */
export function ownNodeOf(
  { hostRoot, kubeconfig, node }: Pick<NodeSettings, "hostRoot" | "kubeconfig" | "node">,
  { env }: Pick<Io, "env">,
): OwnNode {
  return { openCluster: clusterOpener({ root: hostRoot, kubeconfig, env }), name: node.toLowerCase(), hostRoot };
}

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
