import { isAbsolute } from "node:path";
import { scanOffline } from "../../diagnose/offline.ts";
import { observeOffline } from "../../node/observe-offline.ts";
import { buildReport } from "../../report/build.ts";
import type { ExitCode, Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import { resolveSettings } from "../settings/read.ts";
import { showReport, takeLayout } from "../show-report.ts";
import { withClassIds } from "../targets.ts";
import type { ScanFlags } from "./scan.ts";

/** Reads the files of a runtime that does not run; makes no calls and changes nothing. */
export async function runScanOffline(asked: ScanFlags, io: Io): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const { containerdRoot, containerdVersion, all = false, noHeaders = false, quiet = false } = flags;
  if (containerdRoot !== undefined && !isAbsolute(containerdRoot)) {
    throw new SettingsError(`--containerd-root: "${containerdRoot}" is not an absolute path`);
  }
  const settings = await withClassIds(await resolveSettings(flags, io));
  const facts = await observeOffline({ ...settings, containerdRoot, containerdVersion });
  const { snapshot, diagnosis, sandboxes } = scanOffline(facts, settings);
  // Without a runtime it is unknown whether pods can be created.
  const { podCreation: _unknown, ...report } = buildReport(snapshot, diagnosis);
  return await showReport({ ...report, sandboxes }, { ...settings, ...layout, all, noHeaders, quiet }, io);
}
