import { buildCommand } from "@stricli/core";
import { onOff } from "../flag-kinds.ts";
import type { HealFlags } from "../heal.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const heal = buildCommand<HealFlags, [], Context>({
  docs: { brief: "Heal what is proven stuck. Exit 0 nothing left, 1 something left, 2 could not look, 3 refused" },
  parameters: {
    flags: {
      ...nodeFlags,
      dryRun: onOff("Stop at the plan"),
      yes: onOff("Do not ask"),
      noKick: onOff("Do not restart pods that crash-looped for want of what was healed"),
      allDead: onOff("Sweep everything that is proven dead, finished pods included (their logs go to quarantine)"),
    },
    aliases: { ...nodeFlagAliases, y: "yes" },
  },
  func: async function (flags) {
    const { runHeal } = await import("../heal.ts");
    this.finish(await runHeal(flags, this.io));
  },
});
