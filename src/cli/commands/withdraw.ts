import { withdraw } from "../../agent/kube/withdraw.ts";
import { clusterOpener, withApi } from "../../kube/cluster-credentials.ts";
import { ExitCode, type Io } from "../io.ts";
import { text } from "../settings/kinds.ts";
import { readSettings } from "../settings/read.ts";
import { type FlagValues, nodeFlags } from "../settings/table.ts";
import { defineCommand } from "./index.ts";

const withdrawFlags = {
  namespace: text("Namespace of the agents (default unghost)", "NAME"),
  kubeconfig: nodeFlags.kubeconfig,
  config: nodeFlags.config,
  timeout: nodeFlags.timeout,
};
type WithdrawFlags = FlagValues<typeof withdrawFlags>;

export const withdrawCommand = defineCommand({ flags: withdrawFlags, run: runWithdraw });

const REQUESTS_MS = 60_000;
const WAIT_MS = 120_000;

/** As kubectl: this command runs where an administrator works, not as a part of a node. */
function ofAdministrator({ env }: Pick<Io, "env">): string | undefined {
  return env["KUBECONFIG"]?.split(":").find((path) => path !== "");
}

/** For uninstalling a chart or a manifest: agents cannot know whether they are stopped permanently. */
async function runWithdraw({ namespace = "unghost", ...flags }: WithdrawFlags, io: Io): Promise<ExitCode> {
  const { kubeconfig = ofAdministrator(io), hostRoot } = await readSettings(flags, io);
  const openCluster = clusterOpener({ root: hostRoot, kubeconfig, env: io.env });
  try {
    const done = await withApi(openCluster, WAIT_MS + REQUESTS_MS, (api) =>
      withdraw(api, { namespace, waitMs: WAIT_MS }),
    );
    io.stdout(
      `Removed the conditions GhostSandboxes and SandboxCreation from ${done.nodes.length} nodes: ${done.nodes.join(", ") || "none"}.\n`,
    );
    io.stdout(
      `Deleted ${done.leases.length} leases in ${namespace}, ${done.reports} GhostReports and ${done.requests} GhostHeals.\n`,
    );
    if (done.agents.length === 0) return ExitCode.ok;
    io.stderr(
      `Agents still run and will publish again: ${done.agents.join(", ")}. Delete them, then run this again.\n`,
    );
    return ExitCode.findings;
  } catch (error) {
    io.stderr(
      `unghost: ${error instanceof Error ? error.message : String(error)}. Run this again once that is solved.\n`,
    );
    return ExitCode.unknown;
  }
}
