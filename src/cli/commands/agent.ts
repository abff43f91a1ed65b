import { buildCommand } from "@stricli/core";
import type { AgentCommandFlags } from "../agent.ts";
import { agentFlags } from "../config/agent-flags.ts";
import { nodeFlagAliases, nodeFlags } from "../node-flags.ts";
import type { Context } from "./context.ts";

export const agent = buildCommand<AgentCommandFlags, [], Context>({
  docs: { brief: "Watch this node for ever, and heal what is proven stuck as it appears" },
  parameters: { flags: { ...nodeFlags, ...agentFlags }, aliases: nodeFlagAliases },
  func: async function (flags) {
    const { runAgentCommand } = await import("../agent.ts");
    this.finish(await runAgentCommand(flags, this.io));
  },
});
