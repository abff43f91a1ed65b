/**
 * Runs the tests of the project `systemd`, or prints the reason and exits with 77 where no systemd can be booted. Arguments are
 * passed on to vitest: names of test files, -t and the like.
 */
import { spawnSync } from "node:child_process";
import { ensureClusterTools } from "../lab/cluster/tools.ts";
import { ensureSystemdRootfs } from "../lab/systemd/rootfs.ts";

/** The usual code of a test that was skipped as a whole. */
const CANNOT_RUN = 77;

for (const ensure of [ensureSystemdRootfs, ensureClusterTools]) {
  const parts = await ensure();
  if (parts.available) continue;
  console.error(`boot-test cannot run on this machine: ${parts.reason}`);
  process.exit(CANNOT_RUN);
}
const { status } = spawnSync("vitest", ["run", "--project", "systemd", ...process.argv.slice(2)], { stdio: "inherit" });
process.exit(status ?? 1);
