import { lstatSync } from "node:fs";
import { resolveOnHost } from "../snapshot/host-paths.ts";

/** Whether nothing lies there. What cannot be told is for the step to meet. */
export function isGone(path: string, { hostRoot }: { readonly hostRoot: string }): boolean {
  try {
    return lstatSync(resolveOnHost(hostRoot, path, "keep"), { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}
