import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findStateDir } from "../../heal/files/state-dir.ts";
import { type Outcome, ok, refuse } from "../../heal/outcome.ts";
import { errorCode } from "../../host/system-error.ts";
import { receiptPath } from "./files.ts";
import type { HostFiles } from "./host-files.ts";
import { findInstalled } from "./installed.ts";
import { NO_RECEIPT, type Receipt, receiptIn } from "./receipt.ts";

export interface UninstallPlan {
  /** In the order in which they go; the one with the receipt last, so that an interrupted run can be repeated. */
  readonly remove: readonly string[];
  /** Named like ours, without our line. */
  readonly foreign: readonly string[];
  /** What install itself put there. */
  readonly executable: Receipt["executable"];
  /** Removed when they are empty by then, children first. */
  readonly directories: readonly string[];
}

const RECEIPT_PATHS = [receiptPath({ manager: "systemd" }), receiptPath({ manager: "openrc" })];

export function planUninstall(files: HostFiles): UninstallPlan {
  const installed = findInstalled(files);
  const ours = installed.filter(({ isOurs }) => isOurs).map(({ path }) => path);
  const withReceipt = ours.filter((path) => RECEIPT_PATHS.includes(path));
  const receipt = withReceipt.map((path) => receiptIn(files.read(path))).find((found) => found !== NO_RECEIPT);
  const dropInDirs = ours.map((path) => dirname(path)).filter((dir) => dir.endsWith(".service.d"));
  const directories = new Set([...dropInDirs, ...(receipt?.directories ?? [])]);
  return {
    remove: [...ours.filter((path) => !withReceipt.includes(path)), ...withReceipt],
    foreign: installed.filter(({ isOurs }) => !isOurs).map(({ path }) => path),
    executable: receipt?.executable,
    // Longer paths first: a child is always longer than its parent.
    directories: [...directories].sort((a, b) => b.length - a.length),
  };
}

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
