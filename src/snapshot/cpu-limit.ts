import { hostPath } from "../host/host-paths.ts";
import { readProcFile } from "../host/proc-fs.ts";
import type { CpuLimit } from "./types.ts";

/** The CPU limit of a process's cgroup and how often it was reached; undefined without a limit, or where it cannot be read. */
export function readCpuLimit(root: string, pid: number): CpuLimit | undefined {
  const groups = contentOf(root, `/proc/${pid}/cgroup`);
  if (groups === undefined) return undefined;
  for (const line of groups.split("\n")) {
    const [, controllers = "", path = ""] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    // The kernel shows a group outside of this cgroup namespace relative to it.
    if (path === "" || path.split("/").includes("..")) continue;
    const limit = controllers === "" ? unifiedLimit(root, path) : legacyLimit(root, controllers, path);
    if (limit !== undefined) return limit;
  }
  return undefined;
}

function unifiedLimit(root: string, path: string): CpuLimit | undefined {
  const dir = `/sys/fs/cgroup${path}`;
  const [quota, period] = (contentOf(root, `${dir}/cpu.max`) ?? "").trim().split(" ").map(Number);
  return limitOf(quota, period, contentOf(root, `${dir}/cpu.stat`));
}

function legacyLimit(root: string, controllers: string, path: string): CpuLimit | undefined {
  if (!controllers.split(",").includes("cpu")) return undefined;
  const dir = `/sys/fs/cgroup/${controllers}${path}`;
  const [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map((file) =>
    Number(contentOf(root, `${dir}/${file}`) ?? Number.NaN),
  );
  return limitOf(quota, period, contentOf(root, `${dir}/cpu.stat`));
}

/** No limit reads `max` in the one hierarchy and -1 in the other. */
function limitOf(quota = Number.NaN, period = Number.NaN, stat = ""): CpuLimit | undefined {
  if (!(quota > 0) || !(period > 0)) return undefined;
  const periods = numberIn(stat, "nr_periods");
  const throttledPercent = periods === 0 ? 0 : Math.round((100 * numberIn(stat, "nr_throttled")) / periods);
  return { milliCpu: Math.round((1000 * quota) / period), throttledPercent };
}

function numberIn(stat: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, "m").exec(stat)?.[1] ?? 0);
}

function contentOf(root: string, path: string): string | undefined {
  const read = readProcFile(hostPath(root, path));
  return read.kind === "content" ? read.text : undefined;
}
