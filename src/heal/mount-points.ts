import { resolveOnHost } from "../snapshot/host-paths.ts";
import { readProcFile } from "../snapshot/proc-fs.ts";
import type { NodeTools } from "./node-tools.ts";

/** A node with thousands of pods stays well below. */
const MOST_BYTES = 4 * 1024 * 1024;

/**
 * Every mount point that the node's init and its kubelet see, which may live in a mount namespace of its own.
 * Undefined when either could not be read in full.
 */
export async function mountPoints({
  hostRoot,
  facts,
}: Pick<NodeTools, "hostRoot" | "facts">): Promise<readonly string[] | undefined> {
  const processes = await facts.processes();
  if (processes.status !== "read") return undefined;
  const kubelet = processes.value.kubelet?.pid;
  const found: string[] = [];
  for (const pid of kubelet === undefined ? [1] : [1, kubelet]) {
    const table = readProcFile(resolveOnHost(hostRoot, `/proc/${pid}/mountinfo`, "follow"), MOST_BYTES);
    if (table.kind !== "content" || table.text.length >= MOST_BYTES) return undefined;
    found.push(...mountPointsIn(table.text));
  }
  return found;
}

/** The fifth field of each line, in which blanks and backslashes are octal. */
export function mountPointsIn(mountinfo: string): readonly string[] {
  return mountinfo
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => path !== "")
    .map((path) =>
      path.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    );
}
