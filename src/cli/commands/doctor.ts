import { buildCommand } from "@stricli/core";
import type { NodeFlags } from "../node-settings.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const doctor = buildCommand<NodeFlags, [], Context>({
  docs: { brief: "Show what unghost can read and do here, and why not. Exit 0 everything, 1 something is missing" },
  parameters: { flags: nodeFlags, aliases: nodeFlagAliases },
  func: async function (flags) {
    const { runDoctor } = await import("../doctor.ts");
    this.finish(await runDoctor(flags, this.io));
  },
});
