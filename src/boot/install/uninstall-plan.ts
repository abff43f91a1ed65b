import { dirname } from "node:path";
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
