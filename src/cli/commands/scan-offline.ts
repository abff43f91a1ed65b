import { isAbsolute } from "node:path";
import { scanOffline } from "../../diagnose/offline.ts";
import { observeOffline } from "../../node/observe-offline.ts";
import { buildReport } from "../../report/build.ts";
import type { ExitCode, Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import { resolveSettings } from "../settings/read.ts";
import type { NodeFlags } from "../settings/table.ts";
import { showReport, type TableShape, takeLayout } from "../show-report.ts";
import { checkClassNames } from "../targets.ts";

export interface ScanOfflineFlags extends NodeFlags, Pick<TableShape, "all" | "noHeaders" | "quiet"> {
  /** containerd's root directory as a path of the node; detected by default. */
  readonly containerdRoot?: string;
  /** Of the containerd that will be started, if the caller knows it. */
  readonly containerdVersion?: string;
}

/** Reads the files of a runtime that does not run; makes no calls and changes nothing. */
export async function runScanOffline(asked: ScanOfflineFlags, io: Io): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const { containerdRoot, containerdVersion, all = false, noHeaders = false, quiet = false, ...nodeFlags } = flags;
  if (containerdRoot !== undefined && !isAbsolute(containerdRoot)) {
    throw new SettingsError(`--containerd-root: "${containerdRoot}" is not an absolute path`);
  }
  const settings = await resolveSettings(nodeFlags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const facts = await observeOffline({ ...settings, containerdRoot, containerdVersion });
  const { snapshot, diagnosis, sandboxes } = scanOffline(facts, settings);
  // Without a runtime it is unknown whether pods can be created.
  const { podCreation: _unknown, ...report } = buildReport(snapshot, diagnosis);
  return await showReport({ ...report, sandboxes }, { ...settings, ...layout, all, noHeaders, quiet }, io);
}
