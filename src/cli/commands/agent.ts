import { runAgent } from "../../agent/agent.ts";
import { logEvents, openLog } from "../../agent/log.ts";
import { initialState } from "../../agent/state/state.ts";
import { openStore } from "../../agent/state/store.ts";
import { readTimeline } from "../../agent/state/timeline.ts";
import { acquireAgentLock } from "../../heal/state/run-lock.ts";
import { describeError } from "../../host/source.ts";
import { keepGuardBeside } from "../guard-beside.ts";
import { interruptedBySignals } from "../interruption.ts";
import { ExitCode, type Io, STDOUT } from "../io.ts";
import { writesToJournald } from "../process.ts";
import { watchConfigFile } from "../settings/file.ts";
import { SettingsError } from "../settings/kinds.ts";
import { readAgentPolicy } from "../settings/policy.ts";
import { configPath, resolveSettings } from "../settings/read.ts";
import { type AgentFlags, agentFlags, agentNodeFlags, type NodeFlags, nodeFlagAliases } from "../settings/table.ts";
import { sessionOptions } from "../state.ts";
import { withClassIds } from "../targets.ts";
import { VERSION } from "../version.ts";
import { defineCommand } from "./index.ts";

export const agentCommand = defineCommand({
  flags: { ...agentNodeFlags, ...agentFlags },
  aliases: nodeFlagAliases,
  run: runAgentCommand,
});

/** Runs until SIGTERM or SIGINT, and then stops orderly. */
async function runAgentCommand(flags: NodeFlags & AgentFlags, io: Io): Promise<ExitCode> {
  const settings = await withClassIds(await resolveSettings(flags, io));
  const first = await readAgentPolicy(flags, io.env);
  if (!first.ok) throw new SettingsError(first.problems.join("; "));
  const { service } = first.value;
  let { policy } = first.value;

  const session = { ...sessionOptions(settings, "agent"), memory: { settledAs: undefined } };
  const log = openLog(service.logLevel, io.stdout, writesToJournald(io.env, STDOUT));
  const lock = await acquireAgentLock(settings.hostRoot, session.uid);
  if (!lock.ok && lock.refusal.kind === "lock") {
    io.stderr(`${lock.refusal.message} ${lock.refusal.next}\n`);
    return ExitCode.refused;
  }
  // The log contains only JSON lines.
  const logged = { stderr: (text: string) => log.info({ detail: text.trim() }, "stop requested") };
  const interruption = interruptedBySignals(logged, ["SIGINT", "SIGTERM"]);
  if (!lock.ok)
    log.warn(
      { code: "agent-lock-unavailable", reason: lock.refusal.message, next: lock.refusal.next },
      "agent lock unavailable; a second agent would not be detected",
    );
  const remembered = readTimeline(session.stateDir, new Date());
  if ("problem" in remembered)
    log.warn({ problem: remembered.problem }, "reading the timeline failed; it starts again");
  const store = openStore(initialState(settings.node, VERSION, "points" in remembered ? remembered.points : []));
  const stopLogging = logEvents(store, log);

  async function reload(): Promise<void> {
    const read = await readAgentPolicy(flags, io.env);
    if (read.ok) policy = read.value.policy;
    const problem = read.ok ? undefined : read.problems.join("; ");
    store.update(({ configProblem: _before, ...state }) =>
      problem === undefined ? state : { ...state, configProblem: problem },
    );
    store.publish(problem === undefined ? { kind: "config" } : { kind: "config", problem });
  }
  const onReload = (): void => {
    reload().catch((error: unknown) => log.error({ reason: describeError(error) }, "configuration not read"));
  };

  const mayAct = (): boolean => [...policy.classes.values()].some(({ mode }) => mode === "heal");
  const guard = keepGuardBeside({ hostRoot: settings.hostRoot, log, mayAct });
  process.on("SIGHUP", onReload);
  const stopWatching = watchConfigFile(configPath(flags, io.env), onReload);
  try {
    log.info({ node: settings.node, version: VERSION }, "agent started");
    await runAgent({
      store,
      log,
      env: io.env,
      observe: settings,
      diagnosis: settings,
      policy: () => policy,
      session,
      concurrency: settings.concurrency,
      exporters: service,
      interruption,
    });
    log.info("agent ended");
    return ExitCode.ok;
  } finally {
    guard.stop();
    stopWatching();
    process.off("SIGHUP", onReload);
    interruption.dispose();
    stopLogging();
    if (lock.ok) lock.value.release();
  }
}
