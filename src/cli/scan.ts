import { classById } from "../classes/index.ts";
import { diagnose } from "../diagnose/diagnose.ts";
import { buildReport } from "../report/build.ts";
import { formatDocument } from "../report/format.ts";
import type { NodeReport } from "../report/node-report.ts";
import { renderTable } from "../report/table.ts";
import { observe } from "../snapshot/observe.ts";
import { checkClassNames } from "./class-names.ts";
import { ExitCode } from "./exit-codes.ts";
import { type Io, wantsColour } from "./io.ts";
import { type NodeFlags, resolveSettings } from "./settings.ts";

const EXIT_OF_VERDICT: Readonly<Record<NodeReport["verdict"], ExitCode>> = {
  healthy: ExitCode.ok,
  ghosts: ExitCode.findings,
  unknown: ExitCode.unknown,
};

/** Looks, changes nothing. */
export async function runScan(flags: NodeFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const snapshot = await observe(settings, io.env);
  const report = buildReport(snapshot, diagnose(snapshot, settings));
  if (settings.output === "table") {
    const titleOf = (id: string): string => classById(id)?.title ?? "";
    io.stdout(
      renderTable(report, { colour: wantsColour(io), columns: io.columns, verbose: settings.verbose, titleOf }),
    );
  } else {
    io.stdout(await formatDocument(report, settings.output));
  }
  return EXIT_OF_VERDICT[report.verdict];
}
