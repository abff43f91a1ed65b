import { formatDocument } from "../report/format.ts";
import type { NodeReport } from "../report/node-report.ts";
import { oneLine } from "../report/one-line.ts";
import type { OutputFormat } from "../report/output-format.ts";
import { renderTable } from "../report/table.ts";
import { titleOf } from "./class-title.ts";
import { ExitCode } from "./exit-codes.ts";
import { type Io, wantsColour } from "./io.ts";

const EXIT_OF_VERDICT: Readonly<Record<NodeReport["verdict"], ExitCode>> = {
  healthy: ExitCode.ok,
  degraded: ExitCode.findings,
  ghosts: ExitCode.findings,
  unknown: ExitCode.unknown,
};

interface ShowOptions {
  readonly output: OutputFormat;
  readonly verbose: boolean;
}

/** Prints a report as it was asked for; the exit code is its verdict. */
export async function showReport(report: NodeReport, { output, verbose }: ShowOptions, io: Io): Promise<ExitCode> {
  if (output === "table") {
    io.stdout(renderTable(report, { colour: wantsColour(io), columns: io.columns, verbose, titleOf }));
  } else {
    io.stdout(await formatDocument(report, output));
  }
  return EXIT_OF_VERDICT[report.verdict];
}

/** By the protocol of a node-problem-detector plugin: one line for the condition, the rest for its log. */
export function showOneLine(report: NodeReport, { verbose }: Pick<ShowOptions, "verbose">, io: Io): ExitCode {
  io.stdout(`${oneLine(report)}\n`);
  if (report.verdict !== "healthy") {
    io.stderr(renderTable(report, { colour: false, columns: io.columns, verbose, titleOf }));
  }
  return EXIT_OF_VERDICT[report.verdict];
}
