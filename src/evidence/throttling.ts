import type { CpuLimit } from "../node/types/cni.ts";

const STARVED_PERCENT = 25;

/** A process that waits for something else uses no CPU, and is not throttled. */
export function isThrottled(cpu: CpuLimit | undefined): boolean {
  return (cpu?.throttledPercent ?? 0) >= STARVED_PERCENT;
}
