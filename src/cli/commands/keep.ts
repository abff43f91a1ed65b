import { buildCommand } from "@stricli/core";
import { onOff } from "../flag-kinds.ts";
import type { KeepFlags } from "../keep.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const keep = buildCommand<KeepFlags, [], Context>({
  docs: {
    brief:
      "Run as a daemon: sync files of CNI plugins to disk as they are written, so that a power cut leaves none empty. Writes nothing",
  },
  parameters: {
    flags: { ...nodeFlags, once: onOff("Sync what changed in the last minute, and end") },
    aliases: nodeFlagAliases,
  },
  func: async function (flags) {
    const { runKeep } = await import("../keep.ts");
    this.finish(await runKeep(flags, this.io));
  },
});
