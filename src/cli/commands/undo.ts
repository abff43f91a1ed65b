import { buildCommand } from "@stricli/core";
import { onOff } from "../flag-kinds.ts";
import type { NodeFlags } from "../node-settings.ts";
import { nodeFlags } from "../node-settings.ts";
import { resolveSettings } from "../settings.ts";
import { SettingsError } from "../settings-error.ts";
import type { Context } from "./context.ts";

interface UndoFlags extends Pick<NodeFlags, "stateDir" | "hostRoot" | "config" | "output"> {
  readonly last?: boolean;
}

const { stateDir, hostRoot, config, output } = nodeFlags;

export const undo = buildCommand<UndoFlags, [string?], Context>({
  docs: { brief: "Put a file back that healing had moved to quarantine. Exit 0 it is back, 1 it is not, 3 refused" },
  parameters: {
    flags: { stateDir, hostRoot, config, output, last: onOff("The newest that can be undone") },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, optional: true, brief: "Journal id, as history shows it", placeholder: "ID" }],
    },
    aliases: { o: "output" },
  },
  func: async function ({ last, ...flags }, id) {
    if ((id === undefined) === (last !== true)) throw new SettingsError("name one journal id, or --last");
    const { runUndo } = await import("../undo.ts");
    const { sessionOptions } = await import("../state.ts");
    const settings = await resolveSettings(flags, this.io);
    const target = id === undefined ? "last" : { id };
    this.finish(await runUndo({ ...sessionOptions(settings), target, output: settings.output }, this.io));
  },
});
