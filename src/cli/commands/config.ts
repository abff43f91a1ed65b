import { buildCommand } from "@stricli/core";
import { agentFlags } from "../config/agent-settings.ts";
import type { ConfigFlags } from "../config.ts";
import { onOff } from "../flag-kinds.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const config = buildCommand<ConfigFlags, [], Context>({
  docs: { brief: "Show the configuration that holds, and where each value comes from. Exit 0, or 64 when it is wrong" },
  parameters: {
    flags: {
      ...nodeFlags,
      output: { ...nodeFlags.output, brief: "yaml (the default: a configuration file again) or json" },
      ...agentFlags,
      check: onOff("Only say whether it is valid, naming everything that is wrong"),
    },
    aliases: nodeFlagAliases,
  },
  func: async function (flags) {
    const { runConfig } = await import("../config.ts");
    this.finish(await runConfig(flags, this.io));
  },
});
