import type { OwnNode } from "../agent/kube/remove-condition.ts";
import { runCommand, systemdRuns } from "../boot/install/service-manager.ts";
import { clusterOpener } from "../kube/open-cluster.ts";
import { askYesNo } from "./ask.ts";
import type { HookOptions } from "./hook-options.ts";
import type { Io } from "./io.ts";
import type { NodeSettings } from "./node-settings.ts";

/** install and uninstall in the real world. */
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

/** Kubelet writes its node's name in lower case, whatever the machine calls itself. */
export function ownNodeOf(
  { hostRoot, kubeconfig, node }: Pick<NodeSettings, "hostRoot" | "kubeconfig" | "node">,
  { env }: Pick<Io, "env">,
): OwnNode {
  return { openCluster: clusterOpener({ root: hostRoot, kubeconfig, env }), name: node.toLowerCase(), hostRoot };
}
