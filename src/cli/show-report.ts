import { setTimeout as sleep } from "node:timers/promises";
import type { NodeReport } from "../report/node-report.ts";
import { formatDocument, OUTPUT_FORMATS, type OutputFormat } from "../report/output.ts";
import type { TableOptions } from "../report/table.ts";
import { ExitCode, type Io, wantsColour } from "./io.ts";
import { SettingsError } from "./settings/kinds.ts";

const EXIT_OF_VERDICT: Readonly<Record<NodeReport["verdict"], ExitCode>> = {
  healthy: ExitCode.ok,
  degraded: ExitCode.findings,
  ghosts: ExitCode.findings,
  unknown: ExitCode.unknown,
};

/** The table layout of a report, beside its format. */
export interface TableShape extends Pick<TableOptions, "wide" | "all" | "noHeaders" | "command"> {
  /** One finding id per line. */
  readonly names?: boolean;
  /** No output: the exit code is the result. */
  readonly quiet?: boolean;
}

/** Table layouts that are requested like a format. */
const LAYOUTS: Readonly<Record<string, TableShape>> = { wide: { wide: true }, name: { names: true } };
const KNOWN = ["table", ...Object.keys(LAYOUTS), ...OUTPUT_FORMATS.filter((format) => format !== "table")];

/** `-o wide` and `-o name` are layouts of the table; every other format is a setting. */
export function takeLayout<Flags extends { readonly output?: string }>(
  flags: Flags,
): { readonly layout: TableShape; readonly flags: Flags } {
  const { output } = flags;
  if (output === undefined || OUTPUT_FORMATS.some((format) => format === output)) return { layout: {}, flags };
  const layout = Object.hasOwn(LAYOUTS, output) ? LAYOUTS[output] : undefined;
  if (layout !== undefined) return { layout, flags: { ...flags, output: "table" } };
  throw new SettingsError(`--output: expected one of ${KNOWN.join(", ")}, got "${output}"`);
}

interface ShowOptions extends TableShape {
  readonly output: OutputFormat;
  readonly verbose: boolean;
}

/** Prints a report in the requested format; the exit code is its verdict. */
export async function showReport(report: NodeReport, options: ShowOptions, io: Io): Promise<ExitCode> {
  const { output, quiet = false, names = false } = options;
  if (output !== "table") {
    io.stdout(await formatDocument(report, output));
    return EXIT_OF_VERDICT[report.verdict];
  }
  const { renderNames, renderProblems, renderTable } = await loadTable();
  const terms = { ...options, ...io, colour: wantsColour(io) };
  if (quiet || names) {
    if (names) io.stdout(renderNames(report));
    // Without a message, no output would mean "no ghosts".
    if (report.verdict === "unknown") io.stderr(`${renderProblems(report.problems, { ...terms, colour: false })}\n`);
  } else io.stdout(renderTable(report, { ...terms, titleOf: await loadTitles() }));
  return EXIT_OF_VERDICT[report.verdict];
}

/** Other formats need no table. */
function loadTable() {
  return import("../report/table.ts");
}

/** The protocol of a node-problem-detector plugin: one line for the condition, the rest for its log. */
export async function showOneLine(
  report: NodeReport,
  { verbose }: Pick<ShowOptions, "verbose">,
  io: Io,
): Promise<ExitCode> {
  const { oneLine } = await import("../report/one-line.ts");
  io.stdout(`${oneLine(report)}\n`);
  if (report.verdict !== "healthy") {
    const { renderTable } = await loadTable();
    const { columns } = io;
    io.stderr(renderTable(report, { colour: false, columns, verbose, titleOf: await loadTitles() }));
  }
  return EXIT_OF_VERDICT[report.verdict];
}

async function loadTitles(): Promise<TableOptions["titleOf"]> {
  const { classById } = await import("../classes/index.ts");
  return (classId) => classById(classId)?.title ?? "";
}

const CLEAR_SCREEN = "\u001B[H\u001B[2J\u001B[3J";

interface WatchedScan {
  readonly scan: () => Promise<NodeReport>;
  readonly show: (report: NodeReport, io: Io) => Promise<ExitCode>;
}

interface WatchOptions {
  readonly intervalMs: number;
  /** Print the time above each report; not for machine-readable formats. */
  readonly stamped: boolean;
  /** Ends it after this many scans, for tests. */
  readonly passes?: number;
}

/**
 * Scans repeatedly until it is interrupted. A terminal is redrawn; elsewhere a report is appended if its content
 * changed, ignoring ages.
 */
export async function watchScan(
  { scan, show }: WatchedScan,
  { intervalMs, stamped, passes = Number.POSITIVE_INFINITY }: WatchOptions,
  io: Io,
): Promise<ExitCode> {
  let before: string | undefined;
  for (let pass = 1; ; pass++) {
    const report = await scan();
    const content = contentOf(report);
    const isNew = io.stdoutIsTerminal || content !== before;
    const stamp = stamped ? `${report.observedAt}\n` : "";
    const printed: string[] = [];
    const code = await show(report, { ...io, stdout: (output) => printed.push(output) });
    if (isNew) io.stdout((io.stdoutIsTerminal ? CLEAR_SCREEN : "") + stamp + printed.join(""));
    before = content;
    if (pass >= passes) return code;
    await sleep(intervalMs);
  }
}

/** The content of a report without what changes with time. */
function contentOf({ verdict, findings, pending = [], podCreation, kept, problems, ...report }: NodeReport): string {
  return JSON.stringify({
    verdict,
    findings: findings.map(({ id, severity, treatment, blockedPods }) => [
      id,
      severity,
      treatment.automatic,
      blockedPods,
    ]),
    pending: pending.map(({ reason, sandboxId, pod }) => [reason, sandboxId, pod]),
    creation: podCreation?.blockedPods,
    kept: kept.map(({ sandboxId, code }) => [sandboxId, code]),
    problems: problems.map(({ source, code }) => [source, code]),
    sandboxes: report.sandboxes,
    runtime: report.runtime,
    kubernetes: report.kubernetes.source,
  });
}
