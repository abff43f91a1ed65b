import { existsSync } from "node:fs";
import type { Diagnosis } from "../../diagnose/diagnose.ts";
import { observeNode } from "../../diagnose/observe-node.ts";
import type { Selection } from "../../diagnose/select.ts";
import type { LiveRun } from "../../heal/state/run-lock.ts";
import { mayBeLocked, stateDirLayout } from "../../heal/state/state-layout.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import type { Plan } from "../../plan/plan.ts";
import { DEFAULT_CAP } from "../../plan/policy.ts";
import { scanNode } from "../../plan/scan.ts";
import type { NodeReport } from "../../report/node-report.ts";
import { commandLine } from "../command-line.ts";
import type { ExitCode, Io } from "../io.ts";
import { duration, list, onOff, SettingsError, text } from "../settings/kinds.ts";
import { type NodeSettings, parseGiven, resolveSettings, stateDirOf } from "../settings/read.ts";
import { type FlagValues, nodeFlagAliases, nodeFlags } from "../settings/table.ts";
import { showOneLine, showReport, type TableShape, takeLayout, watchScan } from "../show-report.ts";
import { selecting, selectionOf, targetsParameter, withClassIds, withSelection } from "../targets.ts";
import { defineCommand } from "./index.ts";

const scanFlags = {
  ...nodeFlags,
  output: { ...nodeFlags.output, brief: "table, wide, name, json or yaml (default table)" },
  all: onOff("One line for every finding; by default more than 20 are grouped"),
  noHeaders: onOff("Leave the column headings out"),
  namespace: list("Only pods of these namespaces", "NAMESPACE"),
  quiet: onOff("Print nothing: the exit code is the result"),
  watch: onOff("Scan again every --interval until interrupted"),
  interval: text("Pause between two scans with --watch (default 5s)", "DURATION"),
  oneLine: onOff("One line of 80 characters, as node-problem-detector expects it; the rest goes to stderr"),
  from: text("Read a bundle (unghost bundle) instead of this node", "FILE"),
  offline: onOff("Read containerd's database instead of asking it: for a runtime that is down"),
  containerdRoot: text("With --offline: containerd's root directory (default: detected)", "DIR"),
  containerdVersion: text("With --offline: the version that will be started, where it is known", "VERSION"),
};
export type ScanFlags = FlagValues<typeof scanFlags>;

export const scanCommand = defineCommand({
  flags: scanFlags,
  positional: targetsParameter,
  aliases: { ...nodeFlagAliases, n: "namespace", q: "quiet", w: "watch" },
  run: async (flags, io, ...targets) => {
    if (flags.offline !== true) return await runScan(flags, targets, io);
    if (targets.length > 0) throw new SettingsError("targets need the runtime: leave --offline out");
    if (flags.oneLine === true) throw new SettingsError("--one-line asks a runtime that is up: leave --offline out");
    return await (await import("./scan-offline.ts")).runScanOffline(flags, io);
  },
});

const DEFAULT_INTERVAL = "5s";

/** Reads the node, changes nothing. */
async function runScan(asked: ScanFlags, targets: readonly string[], io: Io): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const { oneLine, watch, interval, namespace, all = false, noHeaders = false, quiet = false, from, ...others } = flags;
  if (from !== undefined && watch === true) throw new SettingsError("--from reads a file: leave --watch out");
  // Loaded on demand: a scan of a node needs none of it.
  const saved = from === undefined ? undefined : (await import("../saved-scan.ts")).openSavedScan(from, flags);
  const settings = await withClassIds(saved?.settings ?? (await resolveSettings(flags, io)));
  const command = commandLine({ ...others, namespace, output: undefined, verbose: undefined }, targets, io.env);
  const shape: TableShape = { ...layout, all, noHeaders, quiet, command };
  const selection = selectionOf(targets, namespace);
  // A named target is shown with its evidence.
  const verbose = settings.verbose || targets.length > 0;
  const scan = async (): Promise<NodeReport> => {
    if (saved !== undefined) return await saved.report((observe) => scanned(settings, selection, observe), io);
    return await onNode(() => scanned(settings, selection, () => observeNode(settings, io.env)), settings);
  };
  const show = async (report: NodeReport, on: Io): Promise<ExitCode> =>
    oneLine === true
      ? await showOneLine(report, { verbose }, on)
      : await showReport(report, { ...settings, ...shape, verbose }, on);
  if (watch !== true) return await show(await scan(), io);
  const intervalMs = parseGiven(duration("100ms"), { value: interval ?? DEFAULT_INTERVAL, from: "--interval" });
  return await watchScan({ scan, show }, { intervalMs, stamped: settings.output === "table" }, io);
}

function isApiNamed({ kubeconfig, noKube }: NodeSettings): boolean {
  return kubeconfig !== undefined && !noKube;
}

export interface Scanned {
  readonly report: NodeReport;
  readonly plan: Plan;
}

async function scanned(
  settings: NodeSettings,
  selection: Selection | undefined,
  observe: () => Promise<Snapshot>,
): Promise<Scanned> {
  const selected = await selecting(selection);
  const { snapshot, diagnosis, plan } = await scanNode({
    observe,
    policy: () => ({ ...settings, needsApi: isApiNamed(settings), allDead: false, cap: DEFAULT_CAP }),
    select: (whole) => withBlocking(selected(whole)),
  });
  const { buildReport } = await import("../../report/build.ts");
  const built = buildReport(snapshot, diagnosis);
  return { report: snapshot.cri.status === "read" ? withSelection(built, selection) : built, plan };
}

/** With what else this node knows: earlier failures, and a heal beside this scan. */
async function onNode(scan: () => Promise<Scanned>, settings: NodeSettings): Promise<NodeReport> {
  const beforeScan = await runBeside(settings);
  const { report, plan } = await scan();
  if (report.findings.length === 0) return report;
  const counted = await withFailures(report, settings);
  const found = (await import("../../report/plan.ts")).withPlan(counted, plan);
  // A heal may have started, or ended, while the node was read.
  const beside = beforeScan ?? (await runBeside(settings));
  if (beside === undefined) return found;
  const { withHealingBeside } = await import("../healing-beside.ts");
  return await withHealingBeside(found, beside);
}

/** The named targets, and other findings that block the named pods. */
function withBlocking(diagnosis: Diagnosis): Diagnosis {
  return { ...diagnosis, findings: [...diagnosis.findings, ...(diagnosis.alsoBlocking ?? [])] };
}

/** Without a journal nothing is loaded. */
async function withFailures(report: NodeReport, settings: NodeSettings): Promise<NodeReport> {
  if (!existsSync(stateDirLayout(stateDirOf(settings)).journal)) return report;
  return await (await import("../earlier-failures.ts")).withEarlierFailures(report, settings);
}

/** The run that is changing this node, if any. Without one, nothing is loaded. */
async function runBeside(settings: NodeSettings): Promise<LiveRun | undefined> {
  const stateDir = stateDirOf(settings);
  if (!mayBeLocked(stateDir)) return undefined;
  const { findRunBeside } = await import("../healing-beside.ts");
  return await findRunBeside(stateDir);
}
