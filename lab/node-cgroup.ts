import type { LabNode } from "./node.ts";

/** Shell: creates a cgroup of the node's for a process with a CPU limit. */
export function createCgroupScript(name: string): string {
  return `
for base in /sys/fs/cgroup/* /sys/fs/cgroup; do
  [ -e "$base/cgroup.procs" ] || continue
  mkdir -p "$base/${name}"
  for file in cpuset.cpus cpuset.mems; do
    [ ! -e "$base/${name}/$file" ] || cat "$base/$file" >"$base/${name}/$file"
  done
done`;
}

/** Shell: moves the calling shell, and what it starts, into that cgroup. */
export function joinCgroupScript(name: string): string {
  return `
for group in /sys/fs/cgroup/*/${name}/cgroup.procs /sys/fs/cgroup/${name}/cgroup.procs; do
  [ ! -e "$group" ] || echo 0 >"$group"
done`;
}

/** Kubernetes' CPU limit: 100 are 100m, a tenth of a CPU; child processes count against it as well. */
export async function limitCpu(node: LabNode, name: string, milliCpu: number): Promise<void> {
  const quotaUs = milliCpu * 100;
  const v1 = `/sys/fs/cgroup/cpu/${name}/cpu.cfs_quota_us`;
  const v2 = `/sys/fs/cgroup/${name}/cpu.max`;
  await node.check([
    "sh",
    "-c",
    `if [ -e ${v1} ]; then echo ${quotaUs} >${v1}; else echo ${quotaUs} 100000 >${v2}; fi`,
  ]);
}
