import { valueOr } from "../host/source.ts";
import { EARLIEST_SANE } from "../plan/policy.ts";
import { readBoot } from "../snapshot/boot.ts";

/** A moment that another process can understand, of this boot or of a later one. */
export interface Stamp {
  readonly at: Date;
  /** Missing where the node's /proc is unreadable. */
  readonly boot?: { readonly id: string; readonly uptimeSeconds: number } | undefined;
}

export function stampNow(hostRoot: string): Stamp {
  const at = new Date();
  const boot = valueOr(readBoot({ root: hostRoot, now: at }), undefined);
  return { at, boot: boot && { id: boot.id, uptimeSeconds: boot.uptimeSeconds } };
}

/**
 * How long ago that was. Within one boot the wall clock is not used, since anyone may set it. Across boots it is: one that went
 * back cannot make a moment lie in the future, nor one before the boot younger than the boot.
 */
export function msSince(then: Stamp, now: Stamp): number {
  if (then.boot !== undefined && then.boot.id === now.boot?.id) {
    return Math.max(0, (now.boot.uptimeSeconds - then.boot.uptimeSeconds) * 1000);
  }
  const byBoot = then.boot === undefined ? 0 : (now.boot?.uptimeSeconds ?? 0) * 1000;
  const byWallClock = then.at < EARLIEST_SANE ? 0 : now.at.getTime() - then.at.getTime();
  return Math.max(byBoot, byWallClock, 0);
}
