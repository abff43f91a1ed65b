import { getPriority, setPriority } from "node:os";

/**
 * A power cut tears new files until the keeper has reacted. On a node short of CPU time, as after a boot, that took up
 * to three seconds behind 16 processes per core. The agent uses less than half a percent of a CPU.
 */
const NICE_OF: ReadonlyMap<string, number> = new Map([
  ["agent", -10],
  ["keep", -10],
]);

/**
 * A priority that was already set is kept. In a pod it may not be raised, and would have no effect: the kernel divides
 * time between cgroups first, by the pod's CPU request.
 */
export function raisePriority(command: string | undefined): void {
  const nice = NICE_OF.get(command ?? "");
  if (nice === undefined || getPriority() !== 0) return;
  try {
    setPriority(nice);
  } catch {
    // Files are synced with the default priority.
  }
}
