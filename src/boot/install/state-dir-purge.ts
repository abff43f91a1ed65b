import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findStateDir } from "../../heal/files/state-dir.ts";
import { type Outcome, ok, refuse } from "../../heal/outcome.ts";
import { errorCode } from "../../host/system-error.ts";

/** One of these is in every state directory that was ever used. Without one, somebody has named the wrong directory. */
const TELLTALE = ["journal", "quarantine", "boot.json", "attachments.json"];

/** Whether the state directory may be deleted: it holds the only copies of what healing moved away. */
export async function mayPurge(
  { hostRoot, stateDir, uid }: { readonly hostRoot: string; readonly stateDir: string; readonly uid: number },
  force: boolean,
): Promise<Outcome<"there" | "absent">> {
  const found = await findStateDir(join(hostRoot, stateDir), uid);
  if (!found.ok) return found;
  if (found.value === undefined) return ok("absent");
  const { root, quarantine } = found.value;
  const names = await readdir(root);
  if (names.length > 0 && !names.some((name) => TELLTALE.includes(name))) {
    return refuse(
      `${root} is not recognised as a state directory of unghost.`,
      "Check --state-dir, or delete it by hand.",
    );
  }
  if (force) return ok("there");
  if (names.includes("lock")) {
    return refuse(`${root} is locked: a run is under way, or was cut off.`, "Wait for it, or use --force.");
  }
  const kept = await namesIn(quarantine);
  if (kept.length === 0) return ok("there");
  const files = kept.length === 1 ? "1 entry that" : `${kept.length} entries that`;
  return refuse(
    `${quarantine} holds ${files} healing had moved away; deleting it makes that final.`,
    "Put back what is still wanted (unghost history, unghost undo), or use --force.",
  );
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  }
}
