import { buildCommand } from "@stricli/core";
import { positive } from "../flag-kinds.ts";
import type { NodeFlags } from "../node-settings.ts";
import { nodeFlags } from "../node-settings.ts";
import { resolveSettings } from "../settings.ts";
import type { Context } from "./context.ts";

interface HistoryFlags extends Pick<NodeFlags, "stateDir" | "hostRoot" | "config" | "output"> {
  readonly limit?: number;
}

const { stateDir, hostRoot, config, output } = nodeFlags;

export const history = buildCommand<HistoryFlags, [string?], Context>({
  docs: { brief: "Show what unghost did on this node" },
  parameters: {
    flags: { stateDir, hostRoot, config, output, limit: positive("Show the last N entries", "N") },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, optional: true, brief: "Journal id: show this entry whole", placeholder: "ID" }],
    },
    aliases: { o: "output" },
  },
  func: async function ({ limit, ...flags }, id) {
    const { runHistory } = await import("../history.ts");
    const { stateDirOf } = await import("../state.ts");
    const settings = await resolveSettings(flags, this.io);
    const place = { stateDir: stateDirOf(settings), uid: process.getuid?.() ?? 0, output: settings.output };
    this.finish(
      await runHistory({ ...place, ...(limit !== undefined && { limit }), ...(id !== undefined && { id }) }, this.io),
    );
  },
});
