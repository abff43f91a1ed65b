import { readdirSync, readlinkSync } from "node:fs";

/** The files and directories below a path that this process holds open. */
export function heldOpenBelow(path: string): readonly string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith(path) ? [target] : [];
    } catch {
      // The descriptor of the listing itself.
      return [];
    }
  });
}
