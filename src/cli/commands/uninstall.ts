import { buildCommand } from "@stricli/core";
import { onOff } from "../flag-kinds.ts";
import type { NodeFlags } from "../node-settings.ts";
import { nodeFlags } from "../node-settings.ts";
import { resolveSettings } from "../settings.ts";
import type { Context } from "./context.ts";

interface UninstallFlags
  extends Pick<NodeFlags, "stateDir" | "hostRoot" | "config" | "kubeconfig" | "node" | "noKube"> {
  readonly purge?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const { stateDir, hostRoot, config, kubeconfig, node, noKube } = nodeFlags;

export const uninstall = buildCommand<UninstallFlags, [], Context>({
  docs: {
    brief:
      "Remove the boot hook, and the agent's condition from the node. Exit 0 nothing of it is left, 1 something is, 3 refused",
  },
  parameters: {
    flags: {
      stateDir,
      hostRoot,
      config,
      kubeconfig,
      node,
      noKube,
      purge: onOff("The journal and the quarantine, too"),
      force: onOff("Also files that were changed by hand, and a quarantine that holds files"),
      dryRun: onOff("Only say what would be removed"),
      yes: onOff("Do not ask"),
    },
    aliases: { y: "yes" },
  },
  func: async function ({ purge = false, force, dryRun, yes, ...flags }) {
    const { runUninstall } = await import("../uninstall.ts");
    const { hookOptions, ownNodeOf } = await import("../hook-world.ts");
    const settings = await resolveSettings(flags, this.io);
    const asked = { force: force ?? false, dryRun: dryRun ?? false, yes: yes ?? false };
    const uid = process.getuid?.() ?? 0;
    const ownNode = settings.noKube ? undefined : ownNodeOf(settings, this.io);
    const options = { ...hookOptions(settings, asked, this.io), purge, uid, ...(ownNode && { ownNode }) };
    this.finish(await runUninstall(options, this.io));
  },
});
