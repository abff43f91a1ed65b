import { buildCommand } from "@stricli/core";
import { text } from "../flag-kinds.ts";
import { nodeFlags } from "../node-settings.ts";
import type { WithdrawFlags } from "../withdraw.ts";
import type { Context } from "./context.ts";

export const withdraw = buildCommand<WithdrawFlags, [], Context>({
  docs: {
    brief:
      "Remove what agents published in the cluster: node conditions and leases. Exit codes: 0 removed, 1 something is left",
  },
  parameters: {
    flags: {
      namespace: text("Namespace of the agents (default unghost)", "NAME"),
      kubeconfig: nodeFlags.kubeconfig,
      config: nodeFlags.config,
      timeout: nodeFlags.timeout,
    },
  },
  func: async function (flags) {
    const { runWithdraw } = await import("../withdraw.ts");
    this.finish(await runWithdraw(flags, this.io));
  },
});
