import type { Diagnosis } from "../../diagnose/diagnose.ts";
import { observeNode } from "../../diagnose/observe-node.ts";
import type { Selection } from "../../diagnose/select.ts";
import { nodeHolds } from "../../evidence/pod-presence.ts";
import { unfinishedRemovals } from "../../heal/journal/unsettled.ts";
import { run } from "../../heal/pipeline.ts";
import type { Recovery } from "../../heal/quarantine/recover.ts";
import { settleEarlierRuns } from "../../heal/session.ts";
import { printable } from "../../host/text.ts";
import { clusterOpener } from "../../kube/cluster-credentials.ts";
import type { Plan } from "../../plan/plan.ts";
import { DEFAULT_CAP, type HealPolicy } from "../../plan/policy.ts";
import { unchangedSince } from "../../plan/saved-plan.ts";
import { type Planned, type ScanOptions, scanNode } from "../../plan/scan.ts";
import { buildReport, healingReport, problemsIn } from "../../report/build.ts";
import { formatDocument } from "../../report/output.ts";
import { type PlanOptions, planReport, planSubject, renderPlan } from "../../report/plan.ts";
import { progress } from "../../report/progress.ts";
import { NEW_PLAN } from "../../report/shown-plan.ts";
import { renderNames, renderSummary, selectedWords } from "../../report/table.ts";
import { type CommandLine, inLines } from "../../report/words.ts";
import { commandLine } from "../command-line.ts";
import { withEarlierFailures } from "../earlier-failures.ts";
import { interruptedBySignals } from "../interruption.ts";
import { askYesNo, ExitCode, type Io, print, wantsColour } from "../io.ts";
import { changeSince, readSavedPlan } from "../saved-plan.ts";
import { list, onOff, text } from "../settings/kinds.ts";
import { type NodeSettings, resolveSettings, stateDirOf } from "../settings/read.ts";
import { type FlagValues, nodeFlagAliases, nodeFlags } from "../settings/table.ts";
import { showReport, type TableShape, takeLayout } from "../show-report.ts";
import { sessionOptions } from "../state.ts";
import { classIds, selecting, selectionOf, targetsParameter, withClassIds, withSelection } from "../targets.ts";
import { defineCommand } from "./index.ts";

const healFlags = {
  ...nodeFlags,
  output: { ...nodeFlags.output, brief: "table, wide, name, json or yaml (default table)" },
  dryRun: onOff("Show the plan and change nothing"),
  yes: onOff("Do not ask for confirmation"),
  namespace: list("Only pods of these namespaces", "NAMESPACE"),
  noKick: onOff("Do not restart pods that crash-looped because of what was healed"),
  allDead: onOff("Sweep everything that is proven dead, finished pods included (their logs go to quarantine)"),
  allow: list("Also heal these manual classes, some of which end processes", "CLASS"),
  plan: text(
    "Heal exactly this plan, saved by --dry-run -o json, or with this digest, without a question; refused if it changed",
    "FILE",
  ),
};

export const healCommand = defineCommand({
  flags: healFlags,
  positional: targetsParameter,
  aliases: { ...nodeFlagAliases, n: "namespace", y: "yes" },
  run: runHeal,
});

/** Shows the plan, asks on a terminal, heals, verifies. */
async function runHeal(asked: FlagValues<typeof healFlags>, io: Io, ...targets: readonly string[]): Promise<ExitCode> {
  const { layout, flags } = takeLayout(asked);
  const settings = await withClassIds(await resolveSettings(flags, io));
  const allowed = await classIds(flags.allow ?? []);
  const saved = flags.plan === undefined ? undefined : readSavedPlan(flags.plan, settings.node);
  const selection = selectionOf(targets, flags.namespace);
  // With --yes, the first report is the one after the heal.
  const withoutKernelLog = flags.yes === true && flags.dryRun !== true;
  const firstSnapshot = observeNode({ ...settings, withoutKernelLog }, io.env);
  const policy: HealPolicy = {
    ...settings,
    allDead: flags.allDead ?? false,
    noKick: flags.noKick ?? false,
    consented: new Set(allowed),
    unfinished: await unfinishedRemovals(stateDirOf(settings), process.getuid?.() ?? 0),
    cap: DEFAULT_CAP,
  };
  const pipeline: ScanOptions = {
    observe: () => observeNode(settings, io.env),
    policy: () => policy,
    select: await selecting(selection),
  };
  const shown = await scanNode({ ...pipeline, observe: () => firstSnapshot });
  const { snapshot, diagnosis, plan } = shown;
  if (snapshot.cri.status !== "read") {
    await showReport(buildReport(snapshot, diagnosis), settings, io);
    return ExitCode.unknown;
  }
  const where = snapshot.node + selectedWords(selection);
  const context = { view: diagnosis.view, problems: problemsIn(snapshot), where, allowed };
  const isTable = settings.output === "table";
  const given = { ...asked, dryRun: false, yes: false, output: undefined, verbose: undefined, plan: undefined };
  const command = commandLine(given, targets, io.env);
  if (isTable && plan.actions.length + plan.leftAlone.length > 0) {
    if (layout.names !== true) io.stdout(renderPlan(plan, context, { ...tableOptions(settings, io), ...layout }));
    else if (flags.dryRun === true) io.stdout(renderNames({ findings: plan.actions.map(({ finding }) => finding) }));
  }
  for (const { id } of diagnosis.alsoBlocking ?? []) {
    io.stderr(
      `Not named, and also in the way: ${commandLine({ ...given, namespace: undefined }, [id], io.env)("heal")}\n`,
    );
  }
  if (flags.dryRun !== true && diagnosis.findings.length > 0 && nodeHolds(diagnosis.view).paused) {
    io.stderr(
      "Nothing was changed: this node is paused. Remove unghost.dev/paused from the node, or use --dry-run to see the plan.\n",
    );
    return ExitCode.refused;
  }
  if (flags.dryRun !== true && plan.actions.length === 0 && (await settledEarlierRuns(settings, io))) {
    return await runHeal(asked, io, ...targets);
  }
  if (flags.dryRun === true || plan.actions.length === 0) {
    const isDryRun = flags.dryRun === true;
    if (layout.names !== true) await showPlanOnly(shown, { selection, command, isDryRun }, settings, io);
    return exitOf(diagnosis);
  }
  if (saved !== undefined) {
    const changed = changeSince(saved, shown);
    if (changed !== undefined) {
      io.stderr(`Nothing was changed: ${changed} ${NEW_PLAN} ${command("heal", "--dry-run", "-o", "json")}\n`);
      return ExitCode.refused;
    }
  } else if (flags.yes !== true) {
    const question = `Heal ${planSubject(plan, context)}?`;
    const answer = io.stdinIsTerminal && io.stdoutIsTerminal ? await askYesNo(question, io) : "no-terminal";
    if (answer !== "yes") {
      io.stderr(
        answer === "no"
          ? "Nothing was changed.\n"
          : `Nothing was changed: there is no terminal to confirm on. Run ${command("heal", "--yes")}, or with --dry-run to see the plan.\n`,
      );
      return ExitCode.refused;
    }
  }
  const narrow = saved === undefined ? undefined : unchangedSince(plan);
  return await healAndShow(shown, pipeline, { settings, layout, selection, narrow }, io);
}

interface PlanOnly {
  readonly selection: Selection | undefined;
  readonly command: CommandLine;
  readonly isDryRun: boolean;
}

/** Only the plan is shown: nothing to do, or --dry-run. */
async function showPlanOnly(
  shown: Planned,
  { selection, command, isDryRun }: PlanOnly,
  settings: NodeSettings,
  io: Io,
) {
  const { snapshot, diagnosis, plan } = shown;
  if (settings.output !== "table") {
    io.stdout(await formatDocument(withSelection(planReport(shown), selection), settings.output));
    return;
  }
  if (plan.actions.length + plan.leftAlone.length === 0) {
    await showReport(withSelection(buildReport(snapshot, diagnosis), selection), settings, io);
    io.stdout("Nothing to heal.\n");
  } else if (isDryRun) {
    const next =
      plan.actions.length === 0
        ? []
        : [`To heal: ${command("heal")}`, `Evidence: ${command("heal", "--dry-run", "-v")}`];
    io.stdout(`${inLines(["Dry run: nothing was changed.", ...next], io.columns).join("\n")}\n`);
  }
}

interface Shown {
  readonly settings: NodeSettings;
  readonly layout: TableShape;
  readonly selection: Selection | undefined;
  /** What of each round's plan may be executed. */
  readonly narrow: ((plan: Plan) => Plan) | undefined;
}

async function healAndShow(shown: Planned, pipeline: ScanOptions, how: Shown, io: Io): Promise<ExitCode> {
  const { settings, layout, selection, narrow } = how;
  const { names = false } = layout;
  const table = settings.output === "table";
  const interruption = interruptedBySignals(io);
  const lines = progress({
    colour: table && wantsColour(io),
    ...(io.screenColumns === undefined || !io.stdoutIsTerminal ? {} : { screenColumns: io.screenColumns }),
    verbose: settings.verbose,
    write: table && !names ? io.stdout : io.stderr,
  });
  const healed = await run(shown, {
    ...pipeline,
    narrow: narrow && (({ plan }) => narrow(plan)),
    session: sessionOptions(settings),
    concurrency: settings.concurrency,
    cniCacheDir: settings.cniCacheDir,
    ...(settings.noKube ? {} : { cluster: clusterOpener({ ...settings, root: settings.hostRoot, env: io.env }) }),
    interruption,
    sinks: {
      begin: ({ actions }, recoveries) => {
        printRecoveries(recoveries, io);
        if (!names && actions.length > 0) lines.begin(actions);
      },
      result: (result) => {
        if (names && result.outcome === "healed") io.stdout(renderNames({ findings: [result.action.finding] }));
        else lines.report(result);
      },
      slow: (action) => lines.waiting(action),
      warning: (warning) => io.stderr(`${warning}\n`),
    },
  }).finally(() => {
    lines.end();
    interruption.dispose();
  });
  if (!healed.ok) {
    io.stderr(`Nothing was changed: ${healed.refusal.message} ${healed.refusal.next}\n`);
    return ExitCode.refused;
  }
  if (names) return exitOf(healed.value.diagnosis);
  const report = await withEarlierFailures(healingReport(healed.value), settings);
  const document = withSelection(report, selection);
  await print(settings, document, () => renderSummary(document, tableOptions(settings, io)), io);
  return exitOf(healed.value.diagnosis);
}

function tableOptions({ verbose }: NodeSettings, io: Io): PlanOptions {
  const { columns, screenColumns } = io;
  return { colour: wantsColour(io), columns, screenColumns, verbose };
}

function exitOf({ verdict }: Diagnosis): ExitCode {
  if (verdict === "healthy") return ExitCode.ok;
  return verdict === "unknown" ? ExitCode.unknown : ExitCode.findings;
}

/** Returns true if open entries of a killed run were closed, and the node has to be scanned again. */
async function settledEarlierRuns(settings: NodeSettings, io: Io): Promise<boolean> {
  const settled = await settleEarlierRuns(sessionOptions(settings));
  if (!settled.ok) {
    io.stderr(`What an earlier run left open stays so: ${settled.refusal.message} ${settled.refusal.next}\n`);
    return false;
  }
  printRecoveries(settled.value, io);
  return settled.value.some(({ how }) => how !== "unsettled");
}

function printRecoveries(recoveries: readonly Recovery[], io: Io): void {
  for (const { id, kind, how, detail } of recoveries) {
    io.stderr(`An earlier run was interrupted at ${kind} (${id}): ${how}. ${printable(detail)}\n`);
  }
}
