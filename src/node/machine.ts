import { hostPath, resolveOnHost } from "../host/paths.ts";
import { procLink, readProcFile } from "../host/proc.ts";
import { fileText } from "../host/safe-fs.ts";
import type { PidNamespace } from "./types/snapshot.ts";

/** The code of a problem in a report, and of a refused action. */
export const FOREIGN_PID_NAMESPACE = "foreign-pid-namespace";

/** The next step for a foreign one. */
export const WANTS_HOST_PID =
  "run unghost in the node's pid namespace: hostPID: true in a pod, --pid=host in a container";

export function comparePidNamespace(root: string): PidNamespace {
  const proc = hostPath(root, "/proc");
  // /proc shows a process with its pids from its own namespace downwards: a single one means that it is ours.
  const status = readProcFile(`${proc}/self/status`);
  if (status.kind !== "content") return foreign(`${proc} does not show unghost itself`);
  const pids = /^NSpid:\s*(.+)$/m.exec(status.text)?.[1]?.split(/\s+/) ?? [];
  if (pids.length !== 1 || pids[0] !== String(process.pid)) {
    return foreign(`${proc} shows unghost as pid ${pids[0] ?? "unknown"}, and it is ${process.pid} to itself`);
  }
  const [own, init] = [procLink("/proc/self/ns/pid"), procLink(`${proc}/1/ns/pid`)];
  if (own !== undefined && init !== undefined && own !== init) {
    return foreign(`process 1 in ${proc} is in ${init}, and unghost in ${own}`);
  }
  return { kind: "own" };
}

function foreign(detail: string): PidNamespace {
  return { kind: "foreign", reason: `this is another pid namespace than unghost's own (${detail})` };
}

/** kubelet reports the first existing one. */
const MACHINE_ID_FILES = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** False only on proof: unknown values do not differ. */
export function isSameMachine(
  root: string,
  node: { readonly machineId: string; readonly bootId: string } | undefined,
): boolean {
  if (node === undefined) return true;
  if (node.bootId !== "" && node.bootId === textOf(root, BOOT_ID)) return true;
  const machineId = MACHINE_ID_FILES.map((file) => textOf(root, file)).find((text) => text !== "");
  return machineId === undefined || node.machineId === "" || machineId === node.machineId;
}

function textOf(root: string, path: string): string {
  return fileText(resolveOnHost(root, path, "follow")).trim();
}
