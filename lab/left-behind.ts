import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAlive } from "./process-identity.ts";

/** Everything of a node on this machine has its owner in its name: pid and start time. */
const OWNER = /unghost-lab-(\d+)-(\d+)-/;

/**
 * Leftovers of lab nodes on this machine: directories, mounts, processes and cgroups. Of those that `pid` started, or
 * of all whose owner has ended.
 */
export function leftBehind(pid?: number): readonly string[] {
  const isLeft = (text: string): boolean => {
    const [, owner, startTicks] = OWNER.exec(text) ?? [];
    if (owner === undefined || startTicks === undefined) return false;
    return pid === undefined ? !isAlive({ pid: Number(owner), startTicks }) : Number(owner) === pid;
  };
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return [
    ...readdirSync(tmpdir()).filter(isLeft),
    ...mounts.filter(isLeft),
    ...processes.filter((one) => isLeft(cgroupOf(one))).map((one) => `process ${one}`),
    ...cgroupsBelow("/sys/fs/cgroup").filter(isLeft),
  ];
}

/** The machine's own network: no node may add to it. */
export function machineNetwork(): readonly string[] {
  return [...readdirSync("/sys/class/net"), ...namedNamespaces()].toSorted();
}

function namedNamespaces(): readonly string[] {
  try {
    return readdirSync("/run/netns").map((name) => `/run/netns/${name}`);
  } catch {
    // No namespace was ever created on this machine.
    return [];
  }
}

function cgroupOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, "utf8");
  } catch {
    // It ended meanwhile.
    return "";
  }
}

/** Down to the nodes' own cgroups, and not into them. */
function cgroupsBelow(dir: string): readonly string[] {
  const below = readdirSync(dir, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return below.flatMap(({ name }) => (OWNER.test(name) ? [join(dir, name)] : cgroupsBelow(join(dir, name))));
}
