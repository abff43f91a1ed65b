import { buildCommand } from "@stricli/core";
import { showHelp } from "../help/render-help.ts";
import type { Context } from "./index.ts";

type NoFlags = Readonly<Record<string, never>>;

export const helpCommand = buildCommand<NoFlags, [string?], Context>({
  docs: { brief: "Show help for a command" },
  parameters: {
    flags: {},
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, optional: true, brief: "The command (default: an overview)", placeholder: "COMMAND" },
      ],
    },
  },
  func: async function (_flags, name) {
    this.finish(await showHelp(name, this.io));
  },
});
