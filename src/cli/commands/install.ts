import { buildCommand } from "@stricli/core";
import { onOff, positive, text } from "../flag-kinds.ts";
import type { NodeFlags } from "../node-settings.ts";
import { nodeFlags } from "../node-settings.ts";
import { resolveSettings } from "../settings.ts";
import { VERSION } from "../version.ts";
import type { Context } from "./context.ts";

interface InstallFlags extends Pick<NodeFlags, "stateDir" | "hostRoot" | "config"> {
  readonly agent?: boolean;
  readonly distribution?: string;
  readonly binDir?: string;
  readonly deadlineSeconds?: number;
  readonly force?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly keep?: boolean;
}

const { stateDir, hostRoot, config } = nodeFlags;
const DEFAULT_BIN_DIR = "/usr/local/bin";
const DEFAULT_DEADLINE_SECONDS = 60;

export const install = buildCommand<InstallFlags, string[], Context>({
  docs: { brief: "Install the boot hook for the distribution found. Exit 0 it is there, 1 it is not all, 3 refused" },
  parameters: {
    flags: {
      stateDir,
      hostRoot,
      config,
      agent: onOff("Also install and start the agent as a service of the host"),
      distribution: text("Which one, where that cannot be told by itself", "NAME"),
      binDir: text(`Where the program goes (default ${DEFAULT_BIN_DIR})`, "DIR"),
      deadlineSeconds: positive(`Deadline of the hook (default ${DEFAULT_DEADLINE_SECONDS})`, "N"),
      keep: onOff("Also install the service that runs `unghost keep`: for hosts without the agent"),
      force: onOff("Overwrite files that were changed by hand"),
      dryRun: onOff("Only say what would be written"),
      yes: onOff("Do not ask"),
    },
    positional: {
      kind: "array",
      parameter: { parse: String, brief: "More arguments for the hook (after --)", placeholder: "ARG" },
    },
    aliases: { y: "yes" },
  },
  func: async function (
    { agent, keep, distribution, binDir, deadlineSeconds, force, dryRun, yes, ...flags },
    ...bootArgs
  ) {
    const { runInstall } = await import("../install.ts");
    const { hookOptions } = await import("../hook-world.ts");
    const settings = await resolveSettings(flags, this.io);
    const asked = { force: force ?? false, dryRun: dryRun ?? false, yes: yes ?? false };
    const options = {
      ...hookOptions(settings, asked, this.io),
      execPath: process.execPath,
      binDir: binDir ?? DEFAULT_BIN_DIR,
      distribution,
      deadlineSeconds: deadlineSeconds ?? DEFAULT_DEADLINE_SECONDS,
      bootArgs,
      agent: agent ?? false,
      version: VERSION,
      keep: keep ?? false,
    };
    this.finish(await runInstall(options, this.io));
  },
});
