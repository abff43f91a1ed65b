import { diagnose } from "../diagnose/diagnose.ts";
import { buildReport } from "../report/build.ts";
import { observe } from "../snapshot/observe.ts";
import { checkClassNames } from "./class-names.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { type NodeFlags, resolveSettings } from "./settings.ts";
import { showReport } from "./show-report.ts";

/** Looks, changes nothing. */
export async function runScan(flags: NodeFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const snapshot = await observe(settings, io.env);
  return await showReport(buildReport(snapshot, diagnose(snapshot, settings)), settings, io);
}
