import type { PodRef } from "../../src/node/types/ids.ts";
import { logCgroupBusy } from "../kubelet-log.ts";
import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

/** A process in the cgroup of a pod that is gone: the kernel refuses to remove it, as kubelet's log has it. */
const LEAVE_PROCESS = `
base=/sys/fs/cgroup
[ ! -d "$base/memory" ] || base="$base/memory"
dir="$base/kubepods/burstable/pod$0"
mkdir -p "$dir"
sleep 100000 </dev/null >/dev/null 2>&1 &
echo $! >"$dir/cgroup.procs"
! rmdir "$dir" 2>/dev/null
echo "$dir $!"
`;

export async function busyCgroup(
  node: LabNode,
  { uid }: Pick<PodRef, "uid">,
): Promise<Injected & { readonly path: string; readonly pid: number }> {
  const stdout = await node.check(["sh", "-e", "-c", LEAVE_PROCESS, uid]);
  const [path = "", pid = ""] = stdout.trim().split(" ");
  logCgroupBusy(node, uid, path);
  return { fault: "busy-cgroup", did: `left process ${pid} in ${path}`, path, pid: Number(pid) };
}
