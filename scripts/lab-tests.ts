import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type CgroupVersion, defaultCgroup, hasCgroup2 } from "../lab/cgroup.ts";
import { leftBehind, machineNetwork } from "../lab/left-behind.ts";
import type { Unavailable } from "../lab/tools.ts";

/** The conventional exit code of a skipped test. */
const CANNOT_RUN = 77;
const SETTLE_MS = 10_000;

/**
 * Runs the tests of one project, or exits 77 with the reason if their requirements are missing. The arguments are
 * passed on to vitest: names of test files, -t and the like. Fails if the nodes left something behind.
 */
export async function runLabTests(
  target: string,
  project: string,
  needs: readonly (() => Promise<{ readonly available: true } | Unavailable>)[],
): Promise<never> {
  for (const ensure of needs) {
    const parts = await ensure();
    if (parts.available) continue;
    console.error(`${target} cannot run on this machine: ${parts.reason}`);
    process.exit(CANNOT_RUN);
  }
  const before = new Set([...leftBehind(), ...machineNetwork()]);
  const vitest = ["run", "--project", project, ...process.argv.slice(2)];
  let status = 0;
  for (const cgroup of cgroupVersions()) {
    console.log(`${target} on cgroup ${cgroup}`);
    status ||= await statusOf(vitest, cgroup);
  }
  const left = await leftForGood(before);
  if (left.length === 0) process.exit(status);
  console.error(`${target} left behind:\n${left.join("\n")}`);
  process.exit(status || 1);
}

/** Most users run v2; the long form runs everything on v1, too. */
function cgroupVersions(): readonly CgroupVersion[] {
  if (process.env["UNGHOST_LAB_CGROUP"] || !hasCgroup2()) return [defaultCgroup()];
  return process.env["UNGHOST_LAB_ALL"] ? ["v2", "v1"] : ["v2"];
}

/** A signal that ends this process ends the tests, which clear their nodes away. */
async function statusOf(vitest: readonly string[], cgroup: CgroupVersion): Promise<number> {
  const env = { ...process.env, UNGHOST_LAB_CGROUP: cgroup };
  const tests = spawn("vitest", vitest, { stdio: "inherit", env });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => tests.kill(signal));
  const [status] = (await once(tests, "exit")) as [number | null];
  return status ?? 1;
}

/** Waits for killed processes: the tests' own end after vitest, and zombies wait for the machine's reaper. */
async function leftForGood(before: ReadonlySet<string>): Promise<readonly string[]> {
  const end = performance.now() + SETTLE_MS;
  for (;;) {
    const left = [...leftBehind(), ...machineNetwork()].filter((one) => !before.has(one));
    if (left.length === 0 || performance.now() > end) return left;
    await sleep(100);
  }
}
