import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./cache.ts";

/** crictl from PATH or the lab's cache. The lab does not install it. */
export function findCrictl(): string | undefined {
  const dirs = [...(process.env["PATH"] ?? "").split(":").filter((dir) => dir.startsWith("/")), cacheDir()];
  return dirs.map((dir) => join(dir, "crictl")).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    // Missing or not executable: the next path is tried.
    return false;
  }
}
