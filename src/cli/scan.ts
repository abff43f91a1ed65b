import { diagnose } from "../diagnose/diagnose.ts";
import { observeNode } from "../diagnose/observe-node.ts";
import { buildReport } from "../report/build.ts";
import type { NodeReport } from "../report/node-report.ts";
import { checkClassNames } from "./class-names.ts";
import type { ExitCode } from "./exit-codes.ts";
import { runBeside, withHealingBeside } from "./healing-beside.ts";
import type { Io } from "./io.ts";
import type { NodeFlags, NodeSettings } from "./node-settings.ts";
import { duration } from "./setting-values.ts";
import { resolveSettings } from "./settings.ts";
import { showOneLine, showReport, type TableShape } from "./show-report.ts";
import { takeLayout } from "./table-flags.ts";

export interface ScanFlags extends NodeFlags, Pick<TableShape, "all" | "noHeaders" | "quiet"> {
  readonly oneLine?: boolean;
  readonly watch?: boolean;
  readonly interval?: string;
}

const DEFAULT_INTERVAL_MS = 5000;
const SHORTEST_INTERVAL_MS = 100;

/** Reads the node, changes nothing. */
export async function runScan(asked: ScanFlags, io: Io): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const { oneLine, watch, interval, all, noHeaders, quiet, ...nodeFlags } = flags;
  const settings = await resolveSettings(nodeFlags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const shape: TableShape = { ...layout, all: all ?? false, noHeaders: noHeaders ?? false, quiet: quiet ?? false };
  const show = async (on: Io): Promise<ExitCode> => {
    const report = await scanNode(settings, io);
    return oneLine === true
      ? showOneLine(report, settings, on)
      : await showReport(report, { ...settings, ...shape }, on);
  };
  if (watch !== true) return await show(io);
  const from = { value: interval, from: "--interval" };
  const intervalMs = (interval === undefined ? undefined : duration(from, SHORTEST_INTERVAL_MS)) ?? DEFAULT_INTERVAL_MS;
  const { watchScan } = await import("./watch-scan.ts");
  return await watchScan(show, { intervalMs, stamped: settings.output === "table" }, io);
}

async function scanNode(settings: NodeSettings, io: Io): Promise<NodeReport> {
  const run = await runBeside(settings);
  const snapshot = await observeNode(settings, io.env);
  const found = buildReport(snapshot, diagnose(snapshot, settings));
  // It may have begun, or ended, while the node was read.
  const beside = found.findings.length === 0 ? undefined : (run ?? (await runBeside(settings)));
  return beside === undefined ? found : await withHealingBeside(found, beside);
}
