/**
 * Runs the tests of the project `cluster`, or prints the reason and exits with 77 where no cluster can run. Arguments are passed on
 * to vitest: names of test files, -t and the like.
 */
import { spawnSync } from "node:child_process";
import { ensureClusterTools } from "../lab/cluster/tools.ts";

/** The usual code of a test that was skipped as a whole. */
const CANNOT_RUN = 77;

const tools = await ensureClusterTools();
if (!tools.available) {
  console.error(`cluster-test cannot run on this machine: ${tools.reason}`);
  process.exit(CANNOT_RUN);
}
const { status } = spawnSync("vitest", ["run", "--project", "cluster", ...process.argv.slice(2)], { stdio: "inherit" });
process.exit(status ?? 1);
