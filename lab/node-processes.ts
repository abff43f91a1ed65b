import { readdirSync, readFileSync } from "node:fs";
import type { LabNode } from "./node.ts";

export interface NodeProcess {
  /** In the node's pid namespace. */
  readonly pid: number;
  readonly command: readonly string[];
  readonly environment: ReadonlyMap<string, string>;
}

/** Every process of the node, read from outside without a program in it. */
export function processesOf(node: LabNode): readonly NodeProcess[] {
  const pids = readdirSync(node.livePath("/proc")).filter((name) => /^\d+$/.test(name));
  return pids.map((pid) => ({
    pid: Number(pid),
    command: strings(node, pid, "cmdline"),
    environment: new Map(strings(node, pid, "environ").map(splitAtEquals)),
  }));
}

function strings(node: LabNode, pid: string, file: string): readonly string[] {
  try {
    return readFileSync(node.livePath(`/proc/${pid}/${file}`), "utf8")
      .split("\0")
      .slice(0, -1);
  } catch (error) {
    // It ended between the listing and the reading.
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return [];
    throw error;
  }
}

function splitAtEquals(pair: string): [string, string] {
  const at = pair.indexOf("=");
  return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
}
