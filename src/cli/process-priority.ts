import { getPriority, setPriority } from "node:os";

/**
 * Files are torn by a power cut until the keeper has reacted. On a node short of processor time, as after a boot, that
 * took up to three seconds behind 16 processes a core. The agent uses less than half a percent of a processor.
 */
const NICE_OF: ReadonlyMap<string, number> = new Map([
  ["agent", -10],
  ["keep", -10],
]);

/**
 * Where somebody else chose a priority, that one stays. In a pod it may not be raised, and would decide nothing: the kernel
 * divides time between cgroups first, by the pod's CPU request.
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
