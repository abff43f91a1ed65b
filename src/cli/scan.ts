import { diagnose } from "../diagnose/diagnose.ts";
import { observeNode } from "../diagnose/observe-node.ts";
import { buildReport } from "../report/build.ts";
import { checkClassNames } from "./class-names.ts";
import type { ExitCode } from "./exit-codes.ts";
import { runBeside, withHealingBeside } from "./healing-beside.ts";
import type { Io } from "./io.ts";
import type { NodeFlags } from "./node-settings.ts";
import { resolveSettings } from "./settings.ts";
import { showOneLine, showReport } from "./show-report.ts";

export interface ScanFlags extends NodeFlags {
  readonly oneLine?: boolean;
}

/** Looks, changes nothing. */
export async function runScan({ oneLine, ...flags }: ScanFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const run = await runBeside(settings);
  const snapshot = await observeNode(settings, io.env);
  const found = buildReport(snapshot, diagnose(snapshot, settings));
  // It may have begun, or ended, while the node was read.
  const beside = found.findings.length === 0 ? undefined : (run ?? (await runBeside(settings)));
  const report = beside === undefined ? found : await withHealingBeside(found, beside);
  return oneLine === true ? showOneLine(report, settings, io) : await showReport(report, settings, io);
}
