import { type Diagnosis, diagnose } from "../diagnose/diagnose.ts";
import { observeNode } from "../diagnose/observe-node.ts";
import type { Selection } from "../diagnose/select.ts";
import { buildReport } from "../report/build.ts";
import type { NodeReport } from "../report/node-report.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { checkClassNames } from "./class-names.ts";
import type { ExitCode } from "./exit-codes.ts";
import { runBeside, withHealingBeside } from "./healing-beside.ts";
import type { Io } from "./io.ts";
import type { NodeFlags, NodeSettings } from "./node-settings.ts";
import { duration } from "./setting-values.ts";
import { resolveSettings } from "./settings.ts";
import { showOneLine, showReport, type TableShape } from "./show-report.ts";
import { takeLayout } from "./table-flags.ts";
import { narrowing, selectionOf, withSelection } from "./targets.ts";

export interface ScanFlags extends NodeFlags, Pick<TableShape, "all" | "noHeaders" | "quiet"> {
  readonly oneLine?: boolean;
  readonly watch?: boolean;
  readonly namespace?: readonly string[];
  readonly interval?: string;
}

const DEFAULT_INTERVAL_MS = 5000;
const SHORTEST_INTERVAL_MS = 100;

/** Reads the node, changes nothing. */
export async function runScan(asked: ScanFlags, targets: readonly string[], io: Io): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const { oneLine, watch, interval, namespace, all, noHeaders, quiet, ...nodeFlags } = flags;
  const settings = await resolveSettings(nodeFlags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const shape: TableShape = { ...layout, all: all ?? false, noHeaders: noHeaders ?? false, quiet: quiet ?? false };
  const selection = selectionOf(targets, namespace);
  // Whoever names one thing wants to know why.
  const verbose = settings.verbose || targets.length > 0;
  const show = async (on: Io): Promise<ExitCode> => {
    const report = await scanNode(settings, selection, io);
    return oneLine === true
      ? showOneLine(report, { verbose }, on)
      : await showReport(report, { ...settings, ...shape, verbose }, on);
  };
  if (watch !== true) return await show(io);
  const from = { value: interval, from: "--interval" };
  const intervalMs = (interval === undefined ? undefined : duration(from, SHORTEST_INTERVAL_MS)) ?? DEFAULT_INTERVAL_MS;
  const { watchScan } = await import("./watch-scan.ts");
  return await watchScan(show, { intervalMs, stamped: settings.output === "table" }, io);
}

async function scanNode(settings: NodeSettings, selection: Selection | undefined, io: Io): Promise<NodeReport> {
  const run = await runBeside(settings);
  const snapshot = await observeNode(settings, io.env);
  const found = selectedReport(snapshot, diagnose(snapshot, settings), selection);
  // It may have begun, or ended, while the node was read.
  const beside = found.findings.length === 0 ? undefined : (run ?? (await runBeside(settings)));
  return beside === undefined ? found : await withHealingBeside(found, beside);
}

/** What was named, and what else keeps the named pods from working. */
function selectedReport(snapshot: Snapshot, whole: Diagnosis, selection: Selection | undefined): NodeReport {
  // Without the runtime's list there is no telling what is on the node.
  if (selection === undefined || snapshot.cri.status !== "read") return buildReport(snapshot, whole);
  const { diagnosis, alsoBlocking } = narrowing(selection, whole, snapshot.node)(whole);
  const shown = { ...diagnosis, findings: [...diagnosis.findings, ...alsoBlocking] };
  return withSelection(buildReport(snapshot, shown), selection);
}
