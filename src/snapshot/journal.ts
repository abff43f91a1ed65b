import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { resolveOnHost } from "./host-paths.ts";

const LINES = 5000;
const MOST_BYTES = 16 * 1024 * 1024;

const run = promisify(execFile);

/** Kept on the disk, or in memory alone. */
const PLACES = ["/var/log/journal", "/run/log/journal"] as const;

/** Where the journal of a node lies that is mounted below `root`. */
export function journalDirectory(root: string): string | undefined {
  return PLACES.map((path) => resolveOnHost(root, path, "follow")).find((path) => existsSync(path));
}

/** The newest lines of some units of this boot. */
export async function readJournal(
  root: string,
  units: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly reason: string }> {
  const directory = root === "/" ? undefined : journalDirectory(root);
  if (root !== "/" && directory === undefined) return { reason: `its files are not to be seen below ${root}` };
  const where = directory === undefined ? [] : ["--directory", directory];
  const args = [...where, "--boot", "--no-pager", "--quiet", "--output=cat", `--lines=${LINES}`];
  try {
    const { stdout } = await run("journalctl", [...args, ...units.flatMap((unit) => ["--unit", unit])], {
      maxBuffer: MOST_BYTES,
      signal,
    });
    return { text: stdout };
  } catch (error) {
    return { reason: `journalctl: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}` };
  }
}
