import { buildCommand } from "@stricli/core";
import { onOff } from "../flag-kinds.ts";
import { wantsColour } from "../io.ts";
import { nodeFlags } from "../node-settings.ts";
import { resolveSettings } from "../settings.ts";
import type { Context } from "./context.ts";

interface ExplainFlags {
  readonly journal?: boolean;
  readonly list?: boolean;
  readonly output?: string;
}

export const explain = buildCommand<ExplainFlags, string[], Context>({
  docs: { brief: "Say what an error line means: class, cause, cure. Needs no node. Exit 0 recognised, 1 not" },
  parameters: {
    flags: {
      journal: onOff("Read this machine's journal"),
      list: onOff("List all failure classes"),
      output: nodeFlags.output,
    },
    positional: {
      kind: "array",
      parameter: { parse: String, brief: "Error lines, files, a class, or - for standard input", placeholder: "TEXT" },
    },
    aliases: { o: "output" },
  },
  func: async function ({ journal = false, list = false, ...flags }, ...texts) {
    const { runExplain } = await import("../explain.ts");
    const { output } = await resolveSettings(flags, this.io);
    this.finish(await runExplain({ texts, journal, list, output, colour: wantsColour(this.io) }, this.io));
  },
});
