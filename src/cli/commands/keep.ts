import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { logKeeperProblems } from "../../agent/durable-cni-files.ts";
import { openLog } from "../../agent/log.ts";
import { openKeeper } from "../../durable/keeper.ts";
import { describeKeeper, isSerious, publishKeeper } from "../../durable/keeper-state.ts";
import { pluginRoots, runtimeConfDir } from "../../durable/kept-directories.ts";
import { describeError } from "../../host/source.ts";
import { interruptedBySignals } from "../interruption.ts";
import { ExitCode, type Io, STDOUT } from "../io.ts";
import { writesToJournald } from "../process.ts";
import { onOff } from "../settings/kinds.ts";
import { resolveSettings } from "../settings/read.ts";
import { type FlagValues, keeperFlags, nodeFlagAliases } from "../settings/table.ts";
import { defineCommand } from "./index.ts";

const keepFlags = { ...keeperFlags, once: onOff("Sync what changed in the last minute, and end") };
type KeepFlags = FlagValues<typeof keepFlags>;

export const keepCommand = defineCommand({ flags: keepFlags, aliases: nodeFlagAliases, run: runKeep });

/** The runtime may start later, or get another configuration. */
const ASK_RUNTIME_EVERY_MS = 60_000;

/** Keeps the files of CNI plugins durable, without the rest of the agent; ends by SIGTERM or SIGINT. */
async function runKeep({ once: isOnce = false, ...flags }: KeepFlags, io: Io): Promise<ExitCode> {
  const settings = await resolveSettings(flags, io);
  const log = openLog(settings.verbose ? "debug" : "info", io.stdout, writesToJournald(io.env, STDOUT));
  let confDir: string | undefined;
  const askRuntime = async (): Promise<void> => {
    confDir = (await runtimeConfDir({ ...settings, env: io.env })) ?? confDir;
  };
  if (isOnce) await askRuntime();
  const lost = Promise.withResolvers<never>();
  const keeper = openKeeper({
    roots: pluginRoots({ ...settings, confDir: () => confDir }),
    onSynced: (seconds) => log.debug({ files: seconds.length }, "CNI files synced"),
    onProblems: (problems) => logKeeperProblems(problems, log),
    onLost: lost.reject,
  });
  const published = isOnce ? undefined : publishKeeper(settings.hostRoot, keeper);
  const interruption = interruptedBySignals({ stderr: (text) => log.debug({ detail: text.trim() }, "stop requested") });
  const stopped = interruption.stop.aborted ? Promise.resolve() : once(interruption.stop, "abort");
  try {
    await Promise.race([keeper.started, stopped, lost.promise]);
    log.info({ keeper: describeKeeper(keeper.state()) }, "CNI files are kept durable");
    if (isOnce)
      return keeper.state().problems.every((problem) => !isSerious(problem)) ? ExitCode.ok : ExitCode.findings;
    const notAsked = (error: unknown): void =>
      log.warn({ reason: describeError(error) }, "asking the runtime for its configuration failed; retrying");
    await Promise.race([untilStopped(askRuntime, interruption.stop, notAsked), lost.promise]);
    log.info({ keeper: describeKeeper(keeper.state()) }, "ended");
    return ExitCode.ok;
  } finally {
    published?.close();
    keeper.close();
    interruption.dispose();
  }
}

async function untilStopped(
  askRuntime: () => Promise<void>,
  stop: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  while (!stop.aborted) {
    await askRuntime().catch(onError);
    // The sleep rejects only when it is aborted.
    await sleep(ASK_RUNTIME_EVERY_MS, undefined, { signal: stop }).catch(() => undefined);
  }
}
