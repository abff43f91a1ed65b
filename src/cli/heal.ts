import { nodeHolds } from "../classes/cluster-holds.ts";
import { type Diagnosis, diagnose } from "../diagnose/diagnose.ts";
import { observeNode } from "../diagnose/observe-node.ts";
import { type Planned, runPipeline, type Scanned } from "../heal/pipeline.ts";
import { unfinishedRemovals } from "../heal/unfinished.ts";
import { type Plan, planHealing } from "../plan/plan.ts";
import { DEFAULT_CAP, type HealPolicy } from "../plan/policy.ts";
import { buildReport, problemsIn } from "../report/build.ts";
import { formatDocument } from "../report/format.ts";
import { healingReport, planReport } from "../report/healing.ts";
import { renderPlan } from "../report/plan.ts";
import { type Progress, progress } from "../report/progress.ts";
import { renderSummary } from "../report/summary.ts";
import type { TextOptions } from "../report/text.ts";
import { clusterOpener } from "../snapshot/open-cluster.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { askYesNo } from "./ask.ts";
import { checkClassNames } from "./class-names.ts";
import { settledEarlierRuns, tellRecoveries } from "./earlier-runs.ts";
import { ExitCode } from "./exit-codes.ts";
import { interruptedBySignals } from "./interruption.ts";
import { type Io, wantsColour } from "./io.ts";
import type { NodeFlags, NodeSettings } from "./node-settings.ts";
import { resolveSettings } from "./settings.ts";
import { showReport } from "./show-report.ts";
import { sessionOptions, stateDirOf } from "./state.ts";

export interface HealFlags extends NodeFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly allDead?: boolean;
  readonly noKick?: boolean;
}

/** Shows the plan, asks on a terminal, heals, verifies. */
export async function runHeal(flags: HealFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  // Where nobody is asked, the first report is the one after the healing.
  const withoutKernelLog = flags.yes === true && flags.dryRun !== true;
  const firstSnapshot = observeNode({ ...settings, withoutKernelLog }, io.env);
  const policy: HealPolicy = {
    ...settings,
    allDead: flags.allDead ?? false,
    noKick: flags.noKick ?? false,
    unfinished: await unfinishedRemovals(stateDirOf(settings), process.getuid?.() ?? 0),
    cap: DEFAULT_CAP,
  };
  const judged = (snapshot: Snapshot): Scanned => ({ snapshot, diagnosis: diagnose(snapshot, policy) });
  const scan = async (): Promise<Scanned> => judged(await observeNode(settings, io.env));
  const seen = judged(await firstSnapshot);
  if (seen.snapshot.cri.status !== "read") {
    await showReport(buildReport(seen.snapshot, seen.diagnosis), settings, io);
    return ExitCode.unknown;
  }
  const planFor = (diagnosis: Diagnosis): Plan => planHealing(diagnosis, policy);
  const plan = planFor(seen.diagnosis);
  if (settings.output === "table") io.stdout(renderPlan(plan, problemsIn(seen.snapshot), tableOptions(settings, io)));
  if (flags.dryRun !== true && seen.diagnosis.findings.length > 0 && nodeHolds(seen.diagnosis.view).paused) {
    io.stderr(
      "Nothing was touched: this node is paused. Take the mark unghost.dev/paused off the node, or look with --dry-run.\n",
    );
    return ExitCode.refused;
  }
  if (flags.dryRun !== true && plan.actions.length === 0 && (await settledEarlierRuns(settings, io))) {
    return await runHeal(flags, io);
  }
  if (flags.dryRun === true || plan.actions.length === 0) {
    if (settings.output !== "table") io.stdout(await formatDocument(planReport(seen, plan), settings.output));
    return exitOf(seen.diagnosis);
  }
  if (flags.yes !== true) {
    const answer = io.stdinIsTerminal && io.stdoutIsTerminal ? await askYesNo("Go ahead?", io) : "nobody";
    if (answer !== "yes") {
      io.stderr(
        answer === "no"
          ? "Nothing was touched.\n"
          : "Nothing was touched: there is no terminal to ask on. Run it with --yes, or look with --dry-run first.\n",
      );
      return ExitCode.refused;
    }
  }
  return await healWith({ ...seen, plan }, { settings, plan: planFor, scan }, io);
}

interface Surroundings {
  readonly settings: NodeSettings;
  readonly plan: (diagnosis: Diagnosis) => Plan;
  readonly scan: () => Promise<Scanned>;
}

async function healWith(shown: Planned, { settings, plan, scan }: Surroundings, io: Io): Promise<ExitCode> {
  const table = settings.output === "table";
  const interruption = interruptedBySignals(io);
  let shownProgress: Progress | undefined;
  const healed = await runPipeline(shown, {
    scan,
    plan,
    session: sessionOptions(settings),
    concurrency: settings.concurrency,
    cniCacheDir: settings.cniCacheDir,
    ...(settings.noKube ? {} : { cluster: clusterOpener({ ...settings, root: settings.hostRoot, env: io.env }) }),
    interruption,
    onBegin: (planned, recoveries) => {
      tellRecoveries(recoveries, io);
      shownProgress = progress({
        total: planned.plan.actions.length,
        colour: wantsColour(io),
        live: table && io.stdoutIsTerminal,
        columns: io.columns,
        write: table ? io.stdout : io.stderr,
      });
    },
    onResult: (result) => shownProgress?.report(result),
    onSlow: (action) => shownProgress?.waiting(action),
    onWarning: (warning) => io.stderr(`${warning}\n`),
  }).finally(() => {
    interruption.dispose();
    shownProgress?.end();
  });
  if (!healed.ok) {
    io.stderr(`Nothing was touched: ${healed.refusal.message} ${healed.refusal.next}\n`);
    return ExitCode.refused;
  }
  const report = healingReport(healed.value, plan(healed.value.diagnosis));
  io.stdout(table ? renderSummary(report, tableOptions(settings, io)) : await formatDocument(report, settings.output));
  return exitOf(healed.value.diagnosis);
}

function tableOptions({ verbose }: NodeSettings, io: Io): TextOptions {
  return { colour: wantsColour(io), columns: io.columns, verbose };
}

function exitOf({ verdict }: Diagnosis): ExitCode {
  if (verdict === "healthy") return ExitCode.ok;
  return verdict === "unknown" ? ExitCode.unknown : ExitCode.findings;
}
