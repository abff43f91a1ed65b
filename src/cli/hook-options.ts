import type { OwnNode } from "../agent/kube/withdraw.ts";
import { type RunCommand, runCommand, systemdRuns } from "../boot/install/apply.ts";
import { clusterOpener } from "../kube/cluster-credentials.ts";
import { askYesNo } from "./ask.ts";
import type { Io } from "./io.ts";
import { type NodeSettings } from "./settings/read.ts";

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

/** The real dependencies of install and uninstall. */
export function hookOptions(
  { hostRoot, stateDir }: Pick<NodeSettings, "hostRoot" | "stateDir">,
  asked: { readonly force?: boolean; readonly dryRun?: boolean; readonly yes?: boolean },
  io: Io,
): HookOptions {
  return {
    hostRoot,
    stateDir,
    force: asked.force ?? false,
    dryRun: asked.dryRun ?? false,
    yes: asked.yes ?? false,
    confirm: (question) => askYesNo(question, io),
    systemdRuns: systemdRuns(),
    runCommand,
  };
}

/** Kubelet writes its node's name in lower case, whatever the host name is. */
export function ownNodeOf(
  { hostRoot, kubeconfig, node }: Pick<NodeSettings, "hostRoot" | "kubeconfig" | "node">,
  { env }: Pick<Io, "env">,
): OwnNode {
  return { openCluster: clusterOpener({ root: hostRoot, kubeconfig, env }), name: node.toLowerCase(), hostRoot };
}
