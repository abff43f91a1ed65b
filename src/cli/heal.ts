import { setTimeout as sleep } from "node:timers/promises";
import { type Diagnosis, diagnose } from "../diagnose/diagnose.ts";
import { type Healing, healNode } from "../heal/heal-node.ts";
import { type HealSession, openHealSession } from "../heal/session.ts";
import { type Plan, planHealing } from "../plan/plan.ts";
import { DEFAULT_CAP, type HealPolicy } from "../plan/policy.ts";
import { buildReport, withHealing } from "../report/build.ts";
import { formatDocument } from "../report/format.ts";
import { renderPlan } from "../report/plan.ts";
import { progress } from "../report/progress.ts";
import { renderSummary } from "../report/summary.ts";
import { renderTable } from "../report/table.ts";
import { observe } from "../snapshot/observe.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { askYesNo } from "./ask.ts";
import { checkClassNames } from "./class-names.ts";
import { titleOf } from "./class-title.ts";
import { ExitCode } from "./exit-codes.ts";
import { type Io, wantsColour } from "./io.ts";
import { type NodeFlags, type NodeSettings, resolveSettings } from "./settings.ts";
import { sessionOptions } from "./state.ts";

export interface HealFlags extends NodeFlags {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly allDead?: boolean;
}

interface Seen {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

/** Shows the plan, asks on a terminal, heals, verifies. */
export async function runHeal(flags: HealFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  checkClassNames([...settings.only, ...settings.skip]);
  const policy: HealPolicy = { ...settings, allDead: flags.allDead ?? false, cap: DEFAULT_CAP };
  const look = async (): Promise<Seen> => {
    const snapshot = await observe(settings, io.env);
    return { snapshot, diagnosis: diagnose(snapshot, policy) };
  };
  const seen = await look();
  if (seen.snapshot.cri.status !== "read") {
    await show(seen, settings, io);
    return ExitCode.unknown;
  }
  const plan = planHealing(seen.diagnosis, policy);
  const table = settings.output === "table";
  if (table) io.stdout(renderPlan(plan, { colour: wantsColour(io), columns: io.columns, verbose: settings.verbose }));
  if (flags.dryRun === true || plan.actions.length === 0) {
    if (!table) await show(seen, settings, io);
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
  return await healWith(seen.snapshot, plan, { settings, policy, look }, io);
}

interface Surroundings {
  readonly settings: NodeSettings;
  readonly policy: HealPolicy;
  readonly look: () => Promise<Seen>;
}

async function healWith(snapshot: Snapshot, plan: Plan, around: Surroundings, io: Io): Promise<ExitCode> {
  const { settings } = around;
  const session = await openHealSession({ ...sessionOptions(settings), sleep });
  if (!session.ok) {
    io.stderr(`Nothing was touched: ${session.refusal.message} ${session.refusal.next}\n`);
    return ExitCode.refused;
  }
  try {
    for (const { id, kind, how, detail } of session.value.recoveries) {
      io.stderr(`An earlier run was interrupted at ${kind} (${id}): ${how}. ${detail}\n`);
    }
    const healing = await healInSession(session.value, snapshot, plan, around, io);
    for (const warning of session.value.journal.warnings) io.stderr(`${warning}\n`);
    await tell(healing, settings, io);
    return exitOf(healing.diagnosis);
  } finally {
    await session.value.close();
  }
}

async function healInSession(
  session: HealSession,
  snapshot: Snapshot,
  plan: Plan,
  { settings, policy, look }: Surroundings,
  io: Io,
): Promise<Healing> {
  const table = settings.output === "table";
  const shown = progress({
    total: plan.actions.length,
    colour: wantsColour(io),
    live: table && io.stdoutIsTerminal,
    columns: io.columns,
    write: table ? io.stdout : io.stderr,
  });
  try {
    return await healNode(
      { snapshot, plan },
      {
        session,
        policy,
        concurrency: settings.concurrency,
        cniCacheDir: settings.cniCacheDir,
        look,
        sleep,
        onResult: (result) => shown.report(result),
      },
    );
  } finally {
    shown.end();
  }
}

async function tell(healing: Healing, settings: NodeSettings, io: Io): Promise<void> {
  const report = withHealing(buildReport(healing.snapshot, healing.diagnosis), healing.results);
  if (settings.output !== "table") {
    io.stdout(await formatDocument(report, settings.output));
    return;
  }
  io.stdout(renderSummary(report, { colour: wantsColour(io), columns: io.columns }));
}

async function show({ snapshot, diagnosis }: Seen, settings: NodeSettings, io: Io): Promise<void> {
  const report = buildReport(snapshot, diagnosis);
  if (settings.output !== "table") io.stdout(await formatDocument(report, settings.output));
  else {
    const { verbose } = settings;
    io.stdout(renderTable(report, { colour: wantsColour(io), columns: io.columns, verbose, titleOf }));
  }
}

function exitOf({ verdict }: Diagnosis): ExitCode {
  if (verdict === "healthy") return ExitCode.ok;
  return verdict === "ghosts" ? ExitCode.findings : ExitCode.unknown;
}
