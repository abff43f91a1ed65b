import { buildCommand } from "@stricli/core";
import type { AgentCommandFlags } from "../agent.ts";
import { agentFlags } from "../config/agent-settings.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const agent = buildCommand<AgentCommandFlags, [], Context>({
  docs: {
    brief: "Run as a daemon: watch this node and heal ghosts as they appear. Exit 3: another agent runs on this node",
  },
  parameters: { flags: { ...nodeFlags, ...agentFlags }, aliases: nodeFlagAliases },
  func: async function (flags) {
    const { runAgentCommand } = await import("../agent.ts");
    this.finish(await runAgentCommand(flags, this.io));
  },
});
