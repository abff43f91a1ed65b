import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";

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
  const file = readRegularFile(resolveOnHost(root, path, "follow"));
  return file.kind === "content" ? file.text.trim() : "";
}
