import { join } from "node:path";
import { type BootOptions, type BootPlan, bootOnce, planBoot } from "../../boot/boot.ts";
import { planRepair, type RepairOptions, repair } from "../../boot/repair.ts";
import { type Asked, findRuntimeFiles } from "../../boot/runtime-files.ts";
import { startWatchdog } from "../../boot/watchdog.ts";
import { syncYoung } from "../../durable/keeper.ts";
import { pluginRoots } from "../../durable/kept-directories.ts";
import { unfinishedRemovals } from "../../heal/journal/unsettled.ts";
import { describeError } from "../../host/source.ts";
import { printable } from "../../host/text.ts";
import { DEFAULT_CAP } from "../../plan/policy.ts";
import { count } from "../../report/words.ts";
import { ExitCode, type Io, print } from "../io.ts";
import { onOff, parseDurationMs, SettingsError, text } from "../settings/kinds.ts";
import { type NodeSettings, resolveSettings, stateDirOf } from "../settings/read.ts";
import { type FlagValues, nodeFlagAliases, nodeFlags } from "../settings/table.ts";
import { sessionOptions } from "../state.ts";
import { defineCommand } from "./index.ts";

const bootFlags = {
  ...nodeFlags,
  deadline: text("Give up after this long (default 60s)", "DURATION"),
  after: onOff("The runtime is starting or up: wait for it and heal through it"),
  dryRun: onOff("Print what would be done and change nothing"),
  strict: onOff("Exit 1 when something is left, 2 when it could not be done"),
  repair: onOff("Repair the records of a containerd that does not start (needs --yes)"),
  yes: onOff("With --repair: do it"),
  force: onOff("Also when it has run in this boot already"),
  containerdBin: text("containerd program to start temporarily (default: the distribution's own)", "FILE"),
  containerdConfig: text("Its configuration", "FILE"),
  containerdRoot: text("Its root directory", "DIR"),
};
type BootFlags = FlagValues<typeof bootFlags>;

export const bootCommand = defineCommand({ flags: bootFlags, aliases: nodeFlagAliases, run: runBoot });

const DEFAULT_DEADLINE = "60s";
/** A hook must not make a node wait for its disk. */
const SYNC_MS = 2000;

/** Heals once per boot. Always exits 0, unless --strict: a hook must not prevent a node from starting. */
async function runBoot(flags: BootFlags, io: Io): Promise<ExitCode> {
  const startedAt = performance.now();
  const allowedMs = deadlineMs(flags.deadline ?? DEFAULT_DEADLINE);
  // An operator waits for a repair, and an aborted repair is worse than a slow one.
  if (flags.repair !== true) exitAtDeadline(allowedMs, flags.strict === true, io);
  if (flags.dryRun === true && flags.repair === true) {
    throw new SettingsError("--dry-run: leave out --yes instead; --repair then shows its plan");
  }
  const settings = await resolveSettings(flags, io);
  if (flags.repair === true) return await repairRuntime(settings, flags, io);
  // One line each: messages of plugins and runtimes may contain anything, and logs are read by line.
  const logLine = (line: string): void => io.stderr(`unghost boot: ${printable(line)}\n`);
  const unfinished = await unfinishedRemovals(stateDirOf(settings), process.getuid?.() ?? 0);
  const options: BootOptions = {
    mode: flags.after === true ? "after" : "before",
    deadlineMs: Math.max(0, Math.ceil(allowedMs - (performance.now() - startedAt))),
    force: flags.force ?? false,
    asked: askedOf(flags),
    env: io.env,
    stateDir: stateDirOf(settings),
    runDir: runDirOf(settings),
    heal: {
      observe: settings,
      // At boot no other run is active yet, and what is dead died with the previous boot.
      policy: { ...settings, minAgeMs: 0, allDead: false, unfinished, cap: DEFAULT_CAP },
      session: sessionOptions(settings, "boot"),
      concurrency: settings.concurrency,
      sinks: {
        result: ({ action, outcome, reason }) =>
          logLine(`${outcome} ${action.finding.id}${reason === undefined ? "" : `: ${reason}`}`),
        warning: logLine,
      },
    },
    log: logLine,
  };
  if (flags.dryRun === true) {
    const plan = await planBoot(options);
    await print(settings, plan, () => renderBootPlan(plan), io);
    return flags.strict === true ? strictExitOf(plan) : ExitCode.ok;
  }
  const synced = syncYoung(pluginRoots({ ...settings, confDir: () => undefined }), SYNC_MS).catch((error: unknown) =>
    logLine(`syncing CNI files failed: ${describeError(error)}`),
  );
  const report = await bootOnce(options);
  await synced;
  const { outcome, healed, seconds, reason } = report;
  const line = `unghost boot: ${outcome}, ${healed} healed in ${seconds}s: ${printable(reason)}\n`;
  await print(settings, report, () => line, io);
  if (flags.strict !== true) return ExitCode.ok;
  if (outcome === "failed") return ExitCode.unknown;
  return outcome === "left" ? ExitCode.findings : ExitCode.ok;
}

/** Beyond the deadline, for a process whose timers are blocked. */
const WATCHDOG_MS = 1000;

/** Whatever hangs, the process ends at its deadline, because the node waits for it. Its child processes end with it. */
function exitAtDeadline(allowedMs: number, strict: boolean, io: Io): void {
  startWatchdog(allowedMs + WATCHDOG_MS);
  const timer = setTimeout(() => {
    io.stderr("unghost boot: the deadline has passed and something still hangs: giving up\n");
    process.exit(strict ? ExitCode.unknown : ExitCode.ok);
  }, allowedMs);
  timer.unref();
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.once(signal, () => process.exit(strict ? ExitCode.unknown : ExitCode.ok));
  }
}

function deadlineMs(given: string): number {
  const parsed = parseDurationMs(given);
  if (parsed === undefined)
    throw new SettingsError(`--deadline: "${given}" is not a duration: write it like 90s or 2m`);
  return parsed;
}

function askedOf(flags: BootFlags): Asked {
  return { binary: flags.containerdBin, config: flags.containerdConfig, root: flags.containerdRoot };
}

function runDirOf({ hostRoot }: NodeSettings): string {
  return join(hostRoot, "/run/unghost");
}

/** Repairs the records of a runtime that does not start. Shows the changes, and makes them only with --yes. */
async function repairRuntime(settings: NodeSettings, flags: BootFlags, io: Io): Promise<ExitCode> {
  const found = findRuntimeFiles(settings.hostRoot, askedOf(flags), io.env["PATH"]);
  if (found.kind === "none") {
    io.stderr(`Nothing was touched: ${printable(found.reason)}.\n`);
    return ExitCode.unknown;
  }
  const options: RepairOptions = {
    files: found.files,
    node: settings.node,
    hostRoot: settings.hostRoot,
    cniCacheDir: settings.cniCacheDir,
    runDir: runDirOf(settings),
    session: sessionOptions(settings, "boot"),
    deadlineMs: deadlineMs(flags.deadline ?? DEFAULT_DEADLINE),
  };
  const plan = await planRepair(options);
  if (plan.kind === "nothing") {
    io.stdout(`Nothing to repair: ${printable(plan.reason)}.\n`);
    return ExitCode.ok;
  }
  if (plan.kind === "refused") {
    io.stderr(`Nothing was touched: ${printable(plan.reason)}.\n`);
    return ExitCode.refused;
  }
  io.stdout(`${plan.metadataPath} will be copied aside, and these records removed from it through containerd:\n`);
  for (const { id, class: of, reason } of plan.remove) io.stdout(`  ${printable(id)}  ${of}: ${printable(reason)}\n`);
  if (flags.yes !== true) {
    io.stderr("Nothing was touched: run it with --yes. The runtime must be down, and stay down until it is done.\n");
    return ExitCode.refused;
  }
  const repaired = await repair(plan, options);
  if (repaired.kind === "failed") {
    io.stderr(`Not repaired: ${printable(repaired.reason)}\n`);
    return ExitCode.findings;
  }
  io.stdout(
    `Repaired: ${repaired.removed} records removed; the file as it was is ${repaired.copy}. Start the runtime.\n`,
  );
  return ExitCode.ok;
}

const WAYS: Readonly<Record<BootPlan["way"], string>> = {
  nothing: "would do nothing",
  failed: "could not heal",
  "through-runtime": "would heal through the running runtime",
  borrow: "would heal through a borrowed containerd",
  "caches-only": "could use no runtime, and would only move broken cache files to quarantine",
};

function renderBootPlan({ way, reason, heal, leave }: BootPlan): string {
  const lines = [`unghost boot ${WAYS[way]}: ${reason}`];
  if (heal.length > 0) lines.push(`Would heal (${heal.length}):`, ...heal.map((id) => `  ${id}`));
  if (leave.length > 0) lines.push(`Would leave (${leave.length}):`, ...leave.map((id) => `  ${id}`));
  lines.push(`Dry run: nothing was changed; ${count(heal.length, "finding")} to heal.`);
  return `${lines.map(printable).join("\n")}\n`;
}

/** Like the boot itself: 1 there are findings, 2 they could not be healed. */
function strictExitOf({ way, heal, leave }: BootPlan): ExitCode {
  if (way === "failed" || way === "caches-only") return ExitCode.unknown;
  return heal.length + leave.length > 0 ? ExitCode.findings : ExitCode.ok;
}
