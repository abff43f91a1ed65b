import { join } from "node:path";
import { cached } from "./cache.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { Unavailable } from "./tools.ts";

export interface Promtool {
  readonly available: true;
  readonly path: string;
}

/** Checks rules, their tests and metrics. From Debian's prometheus package, in the lab's cache. */
export async function ensurePromtool(): Promise<Promtool | Unavailable> {
  try {
    const root = await cached("prometheus", (dir) => unpackDebianPackages(["prometheus"], dir));
    return { available: true, path: join(root, "usr/bin/promtool") };
  } catch (error) {
    return { available: false, reason: `no promtool: ${(error as Error).message}` };
  }
}
