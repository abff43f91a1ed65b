import { join } from "node:path";
import { bootOnce } from "../boot/boot.ts";
import { recordAttachments } from "../boot/shutdown.ts";
import { DEFAULT_CAP } from "../plan/policy.ts";
import { formatDocument } from "../report/format.ts";
import { parseDurationMs } from "./duration.ts";
import { ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { type NodeFlags, type NodeSettings, resolveSettings } from "./settings.ts";
import { SettingsError } from "./settings-error.ts";
import { sessionOptions, stateDirOf } from "./state.ts";

export interface BootFlags extends NodeFlags {
  readonly deadline?: string;
  readonly after?: boolean;
  readonly record?: boolean;
  readonly shutdown?: boolean;
  readonly strict?: boolean;
  readonly force?: boolean;
  readonly containerdBin?: string;
  readonly containerdConfig?: string;
  readonly containerdRoot?: string;
}

const DEFAULT_DEADLINE = "60s";

/** Heals once per boot. Exit 0 whatever happens, unless --strict: a hook must not keep a node down. */
export async function runBoot(flags: BootFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  if (flags.record === true) return await record(settings, flags, io);
  const report = await bootOnce({
    mode: flags.after === true ? "after" : "before",
    deadlineMs: deadlineMs(flags.deadline ?? DEFAULT_DEADLINE),
    force: flags.force ?? false,
    asked: { binary: flags.containerdBin, config: flags.containerdConfig, root: flags.containerdRoot },
    env: io.env,
    stateDir: stateDirOf(settings),
    runDir: join(settings.hostRoot, "/run/unghost"),
    heal: {
      observe: settings,
      // At boot nobody else is at work yet, and what is dead is dead since the last one.
      policy: { ...settings, minAgeMs: 0, allDead: false, cap: DEFAULT_CAP },
      session: sessionOptions(settings),
      concurrency: settings.concurrency,
      onResult: ({ action, outcome, reason }) =>
        io.stderr(`unghost boot: ${outcome} ${action.finding.id}${reason === undefined ? "" : `: ${reason}`}\n`),
    },
    log: (line) => io.stderr(`unghost boot: ${line}\n`),
  });
  if (settings.output === "table") {
    io.stdout(`unghost boot: ${report.outcome}, ${report.healed} healed in ${report.seconds}s: ${report.reason}\n`);
  } else io.stdout(await formatDocument(report, settings.output));
  if (flags.strict !== true) return ExitCode.ok;
  if (report.outcome === "failed") return ExitCode.unknown;
  return report.outcome === "left" ? ExitCode.findings : ExitCode.ok;
}

function deadlineMs(text: string): number {
  const parsed = parseDurationMs(text);
  if (parsed === undefined) throw new SettingsError(`--deadline: "${text}" is not a duration: write it like 90s or 2m`);
  return parsed;
}

async function record(settings: NodeSettings, { strict, shutdown }: BootFlags, io: Io): Promise<ExitCode> {
  try {
    const count = await recordAttachments(stateDirOf(settings), settings, shutdown ?? false);
    io.stdout(`unghost boot: ${count} attachments written down\n`);
    return ExitCode.ok;
  } catch (error) {
    io.stderr(`unghost boot: nothing was written down: ${error instanceof Error ? error.message : String(error)}\n`);
    return strict === true ? ExitCode.unknown : ExitCode.ok;
  }
}
