import { buildCommand } from "@stricli/core";
import type { BootFlags } from "../boot.ts";
import { onOff, text } from "../flag-kinds.ts";
import { nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import type { Context } from "./context.ts";

export const boot = buildCommand<BootFlags, [], Context>({
  docs: { brief: "Heal once per boot, before or right after the runtime starts. Exit 0 always, unless --strict" },
  parameters: {
    flags: {
      ...nodeFlags,
      deadline: text("Give up after this long (default 60s)", "DURATION"),
      after: onOff("The runtime is starting or up: wait for it and heal through it"),
      record: onOff("Write down which pods have a network now"),
      shutdown: onOff("With --record: the machine is going down in an orderly way"),
      strict: onOff("Exit 1 when something is left, 2 when it could not be done"),
      repair: onOff("Mend the records of a containerd that will not start (needs --yes)"),
      yes: onOff("With --repair: do it"),
      force: onOff("Also when it has run in this boot already"),
      containerdBin: text("containerd program to borrow (default: the distribution's own)", "FILE"),
      containerdConfig: text("Its configuration", "FILE"),
      containerdRoot: text("Its root directory", "DIR"),
    },
    aliases: nodeFlagAliases,
  },
  func: async function (flags) {
    const { runBoot } = await import("../boot.ts");
    this.finish(await runBoot(flags, this.io));
  },
});
