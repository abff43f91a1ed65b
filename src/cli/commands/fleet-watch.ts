import { type WatchedReport, watchReports } from "../../fleet/watch-reports.ts";
import { printable } from "../../host/text.ts";
import { ExitCode, type Io } from "../io.ts";
import { SettingsError } from "../settings/kinds.ts";
import type { InCluster } from "./fleet.ts";
import { interruptible } from "./fleet-stop.ts";

interface WatchOrder {
  readonly names: readonly string[];
  readonly output: string;
  readonly noHeaders: boolean;
}

const WIDTHS = [20, 40, 9, 6, 8] as const;
const HEADINGS = ["TIME", "NODE", "VERDICT", "STARTS", "BLOCKED", "FINDINGS"];

/** Prints the nodes that are not healthy, then a line for each change, until Ctrl-C. */
export async function watchFleet(
  { access, requestMs }: InCluster,
  { names, output, noHeaders }: WatchOrder,
  io: Io,
): Promise<ExitCode> {
  if (output !== "table" && output !== "json") throw new SettingsError("unghost fleet watch prints -o table or json");
  const stop = interruptible();
  const isWanted = ({ name }: WatchedReport) => names.length === 0 || names.includes(name);
  let isFirst = true;
  const onChange = (reports: readonly WatchedReport[]): void => {
    if (isFirst && output === "table" && !noHeaders) io.stdout(lineOf(HEADINGS));
    const at = `${new Date().toISOString().slice(0, 19)}Z`;
    for (const report of reports.filter(isWanted)) {
      if (isFirst && report.verdict === "healthy" && names.length === 0) continue;
      io.stdout(output === "json" ? `${JSON.stringify({ at, ...report })}\n` : lineOf(cellsOf(report, at)));
    }
    isFirst = false;
  };
  try {
    await watchReports({
      access,
      requestMs,
      stop: stop.signal,
      onChange,
      onTrouble: ({ message }) => io.stderr(`unghost: the watch was interrupted and is opened again: ${message}\n`),
    });
    return ExitCode.ok;
  } finally {
    stop.dispose();
  }
}

function cellsOf({ name, verdict, classes, blockedPods, podCreation }: WatchedReport, at: string): readonly string[] {
  return [at, name, verdict, podCreation, String(blockedPods), classes || "-"];
}

/** The widths are fixed, because the lines to come are unknown. */
function lineOf(cells: readonly string[]): string {
  return `${cells.map((cell, index) => printable(cell).padEnd(WIDTHS[index] ?? 0)).join("  ")}\n`;
}
