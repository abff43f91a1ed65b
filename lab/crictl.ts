import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { cacheDir } from "./cache.ts";
import { goBuild, type Unavailable } from "./tools.ts";

const VERSION = "v1.36.0";

/** crictl from PATH or the lab's cache, if it is there. */
export function findCrictl(): string | undefined {
  const path = (process.env["PATH"] ?? "").split(":").filter((dir) => dir.startsWith("/"));
  const dirs = [...path, cacheDir(), join(cacheDir(), `crictl-${VERSION}`)];
  return dirs.map((dir) => join(dir, "crictl")).find(isExecutable);
}

/** The same, built if the machine has Go. */
export async function ensureCrictl(): Promise<string | Unavailable> {
  const found = findCrictl();
  if (found !== undefined) return found;
  const built = await goBuild("crictl", "sigs.k8s.io/cri-tools", VERSION, ["cmd/crictl"]);
  return typeof built === "string" ? join(built, "crictl") : built;
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
