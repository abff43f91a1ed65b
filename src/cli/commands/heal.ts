import { buildCommand } from "@stricli/core";
import { list, onOff, targetsParameter } from "../flag-kinds.ts";
import type { HealFlags } from "../heal.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const heal = buildCommand<HealFlags, string[], Context>({
  docs: { brief: "Heal what is proven stuck. Exit 0 nothing left, 1 something left, 2 could not look, 3 refused" },
  parameters: {
    flags: {
      ...nodeFlags,
      dryRun: onOff("Show the plan and change nothing"),
      yes: onOff("Do not ask for confirmation"),
      namespace: list("Only pods of these namespaces", "NAMESPACE"),
      noKick: onOff("Do not restart pods that crash-looped for want of what was healed"),
      allDead: onOff("Sweep everything that is proven dead, finished pods included (their logs go to quarantine)"),
    },
    positional: targetsParameter,
    aliases: { ...nodeFlagAliases, n: "namespace", y: "yes" },
  },
  func: async function (flags, ...targets) {
    const { runHeal } = await import("../heal.ts");
    this.finish(await runHeal(flags, targets, this.io));
  },
});
