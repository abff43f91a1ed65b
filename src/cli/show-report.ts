import { formatDocument } from "../report/format.ts";
import type { NodeReport } from "../report/node-report.ts";
import type { OutputFormat } from "../report/output-format.ts";
import { renderTable } from "../report/table.ts";
import { titleOf } from "./class-title.ts";
import { ExitCode } from "./exit-codes.ts";
import { type Io, wantsColour } from "./io.ts";

const EXIT_OF_VERDICT: Readonly<Record<NodeReport["verdict"], ExitCode>> = {
  healthy: ExitCode.ok,
  ghosts: ExitCode.findings,
  unknown: ExitCode.unknown,
};

/** Prints a report as it was asked for; the exit code is its verdict. */
export async function showReport(
  report: NodeReport,
  { output, verbose }: { readonly output: OutputFormat; readonly verbose: boolean },
  io: Io,
): Promise<ExitCode> {
  if (output === "table") {
    io.stdout(renderTable(report, { colour: wantsColour(io), columns: io.columns, verbose, titleOf }));
  } else {
    io.stdout(await formatDocument(report, output));
  }
  return EXIT_OF_VERDICT[report.verdict];
}
