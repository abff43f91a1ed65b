import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { resolveOnHost } from "./host-paths.ts";

const LINES = 5000;
const MOST_BYTES = 16 * 1024 * 1024;

const run = promisify(execFile);

/** The newest lines of some units of this boot. */
export async function readJournal(
  root: string,
  units: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly text: string } | { readonly reason: string }> {
  const where = root === "/" ? [] : ["--directory", resolveOnHost(root, "/var/log/journal", "follow")];
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
