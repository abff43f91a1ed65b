import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { LabNode } from "./node.ts";

/** A file of a CNI plugin without the content that was written. */
export interface TornFile {
  readonly path: string;
  readonly changedAtMs: number;
}

/** Empty files, and results that are not JSON, below the node's CNI directory; power on or off. */
export function tornFiles(node: Pick<LabNode, "path">, dir = "/var/lib/cni"): readonly TornFile[] {
  const root = node.path(dir);
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "lock")
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter(isTorn)
    .map((path) => ({ path: path.slice(root.length + 1), changedAtMs: statSync(path).mtimeMs }));
}

function isTorn(path: string): boolean {
  const text = readFileSync(path, "utf8");
  if (text.trim() === "" || text.includes("\0")) return true;
  if (path.includes("/networks/")) return false;
  try {
    JSON.parse(text);
    return false;
  } catch {
    return true;
  }
}
