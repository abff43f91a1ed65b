import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./cache.ts";

/** crictl, where it is on PATH or was put into the lab's cache. The lab does not bring one of its own. */
export function findCrictl(): string | undefined {
  const dirs = [...(process.env["PATH"] ?? "").split(":").filter((dir) => dir.startsWith("/")), cacheDir()];
  return dirs.map((dir) => join(dir, "crictl")).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Not there, or not for us: the next place is tried.
    return false;
  }
}
