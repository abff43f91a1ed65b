import { getPriority, setPriority } from "node:os";

/**
 * Files are torn by a power cut until the keeper has reacted. On a node short of processor time, as after a boot, that
 * took up to three seconds behind 16 processes a core. The agent uses less than half a percent of a processor.
 */
const NICE_OF: ReadonlyMap<string, number> = new Map([
  ["agent", -10],
  ["keep", -10],
]);

/** Where it may not (a container without SYS_NICE), and where somebody else chose a priority, that one stays. */
export function raisePriority(command: string | undefined): void {
  const nice = NICE_OF.get(command ?? "");
  if (nice === undefined || getPriority() !== 0) return;
  try {
    setPriority(nice);
  } catch {
    // Files are synced with the default priority.
  }
}
