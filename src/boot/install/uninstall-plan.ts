import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isKernelLocked } from "../../heal/state/kernel-lock.ts";
import { type Outcome, ok, refuse } from "../../heal/state/outcome.ts";
import { findStateDir } from "../../heal/state/state-dir.ts";
import { errorCode } from "../../host/source.ts";
import { receiptPath } from "./files.ts";
import type { HostFiles } from "./host-files.ts";
import { findInstalled } from "./installed.ts";
import { NO_RECEIPT, type Receipt, receiptIn } from "./receipt.ts";

export interface UninstallPlan {
  /** In the order of removal; the one with the receipt last, so that an interrupted run can be repeated. */
  readonly remove: readonly string[];
  /** Files with our name, without our line. */
  readonly foreign: readonly string[];
  /** The executable that install copied. */
  readonly executable: Receipt["executable"];
  /** Removed if they are empty then, children first. */
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

/** Every used state directory contains one of these. Without one, --state-dir names the wrong directory. */
const STATE_ENTRIES = ["journal", "quarantine", "boot.json"];

/** Whether the state directory may be deleted: it has the only copies of quarantined files. */
export async function mayPurge(
  { hostRoot, stateDir, uid }: { readonly hostRoot: string; readonly stateDir: string; readonly uid: number },
  force: boolean,
): Promise<Outcome<"there" | "absent">> {
  const found = await findStateDir(join(hostRoot, stateDir), uid);
  if (!found.ok) return found;
  if (found.value === undefined) return ok("absent");
  const { root, quarantine, lock } = found.value;
  const names = await readdir(root);
  if (names.length > 0 && !names.some((name) => STATE_ENTRIES.includes(name))) {
    return refuse(
      `${root} is not recognised as a state directory of unghost.`,
      "Check --state-dir, or delete it by hand.",
    );
  }
  if (force) return ok("there");
  if (await isKernelLocked(lock)) {
    return refuse(`${root} is locked: a run is under way.`, "Wait for it, or use --force.");
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
