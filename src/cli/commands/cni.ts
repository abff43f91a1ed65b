import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { runCommand, systemdRuns } from "../../boot/install/apply.ts";
import { detect, hostFiles } from "../../boot/install/detect.ts";
import { GUARD_BIN_DIR, GUARD_STATE_DIR } from "../../guard/home.ts";
import { configFiles, installGuard } from "../../guard/install/install.ts";
import { byHandOn, planSearchPath, type RunningRuntime, type SearchPathPlan } from "../../guard/install/search-path.ts";
import { type GuardStatus, guardStatus } from "../../guard/install/status.ts";
import { removeGuard, restoreConfig } from "../../guard/install/uninstall.ts";
import { replayQueue } from "../../guard/replay.ts";
import { pollUntil } from "../../host/poll.ts";
import { describeError } from "../../host/source.ts";
import { configuredBinDirs } from "../../node/containerd-config.ts";
import { fetchRuntimeInfo } from "../../node/cri-facts.ts";
import { readCrioCniDirs } from "../../node/crio-config.ts";
import { findNodeRuntime, nameOnHost } from "../../node/runtime-process.ts";
import { openCri } from "../../runtime/cri.ts";
import { askYesNo, ExitCode, type Io, print } from "../io.ts";
import { noSuchAction, onOff } from "../settings/kinds.ts";
import { type NodeSettings, resolveSettings } from "../settings/read.ts";
import { type FlagValues, nodeFlags } from "../settings/table.ts";
import { defineCommand, oneArgument } from "./index.ts";

/** Set by the build; empty where its compiler was not available. */
declare const UNGHOST_CNI_LAUNCHER: string | undefined;

const cniFlags = {
  restart: onOff("With install and uninstall: restart the container runtime after a question"),
  noFail: onOff("With install: exit 0 whatever happens, for an init container"),
  force: onOff("With uninstall: although queued DELs would be lost"),
  dryRun: onOff("Only print what would be changed"),
  yes: onOff("Do not ask"),
  runtimeEndpoint: nodeFlags.runtimeEndpoint,
  hostRoot: nodeFlags.hostRoot,
  config: nodeFlags.config,
  timeout: nodeFlags.timeout,
  output: nodeFlags.output,
};
type CniFlags = FlagValues<typeof cniFlags>;

export const cniCommand = defineCommand({
  flags: cniFlags,
  positional: oneArgument("ACTION", "install, status or uninstall"),
  aliases: { o: "output", y: "yes" },
  run: async (flags, io, action) => {
    const settings = await resolveSettings(flags, io);
    const call: Call = { flags, settings, io, runtime: await runningRuntime(settings, io) };
    try {
      if (action === "install") return flags.noFail === true ? await installOrGoOn(call) : await install(call);
      if (action === "status") return await status(call);
      if (action === "uninstall") return await uninstall(call);
    } catch (error) {
      io.stderr(`unghost cni ${action}: ${describeError(error)}. Run it as root; it can be run again.\n`);
      return ExitCode.findings;
    }
    throw noSuchAction("cni", action ?? "", ["install", "status", "uninstall"]);
  },
});

interface Runtime extends RunningRuntime {
  readonly confDir: string;
}

interface Call {
  readonly flags: CniFlags;
  readonly settings: NodeSettings;
  readonly io: Io;
  readonly runtime: Runtime | undefined;
}

async function runningRuntime(settings: NodeSettings, { env }: Io): Promise<Runtime | undefined> {
  const { hostRoot, runtimeEndpoint, timeoutMs } = settings;
  const found = await findNodeRuntime({ hostRoot, endpoint: runtimeEndpoint, env, timeoutMs });
  if (found.kind !== "found") return undefined;
  const cri = openCri(found.path);
  try {
    const info = await fetchRuntimeInfo(cri, { timeoutMs, signal: AbortSignal.timeout(timeoutMs) });
    if (info === undefined) return undefined;
    const crio = info.cniDirs === undefined ? readCrioCniDirs(hostRoot) : {};
    return {
      name: info.name,
      version: info.version,
      socket: nameOnHost(hostRoot, found.path),
      binDirs: info.cniDirs?.bin ?? crio.bin ?? ["/opt/cni/bin"],
      confDir: info.cniDirs?.conf ?? crio.conf ?? "/etc/cni/net.d",
    };
  } finally {
    cri.close();
  }
}

/** A runtime with many pods takes its time to answer after a start. */
const RESTARTED_MS = 60_000;

function noRuntime({ settings, io }: Call): ExitCode {
  const { hostRoot } = settings;
  io.stderr(
    `The container runtime of ${hostRoot} does not answer, so its version and plugin directories are unknown. Start it, or name its socket with --runtime-endpoint.\n`,
  );
  return ExitCode.unknown;
}

async function install(call: Call): Promise<ExitCode> {
  const { flags, settings, io, runtime } = call;
  const launcher = typeof UNGHOST_CNI_LAUNCHER === "string" ? UNGHOST_CNI_LAUNCHER : "";
  if (launcher === "" || /^(?:node|bun)\b/.test(basename(process.execPath))) {
    io.stderr("This build of unghost has no CNI guard: use a released executable.\n");
    return ExitCode.refused;
  }
  if (runtime === undefined) return noRuntime(call);
  const plan = planOf(runtime, settings.hostRoot);
  const [conflict] =
    plan.kind !== "by-hand" && plan.mode === "first" ? await conflicts(settings.hostRoot, runtime, plan.path) : [];
  if (conflict !== undefined) {
    io.stderr(
      `${conflict} sets bin_dir, and containerd does not start when it finds bin_dirs beside it. Take it out there, then run this again.\n`,
    );
    return ExitCode.refused;
  }
  io.stdout(describePlan(runtime, plan));
  if (flags.dryRun === true) return ExitCode.ok;
  if (!(await agreed("Install the CNI guard?", call))) return ExitCode.refused;
  installGuard(settings.hostRoot, runtime, plan, {
    launcher: Buffer.from(launcher, "base64"),
    program: process.execPath,
  });
  if (plan.kind === "by-hand") return ExitCode.findings;
  io.stdout("The CNI guard is installed.\n");
  return await takeEffect(call, isInEffect(runtime));
}

/** What the operator has done by hand is done. */
function planOf(runtime: Runtime, hostRoot: string): SearchPathPlan {
  const planned = planSearchPath(runtime, configFiles(hostRoot));
  const found = detect(hostFiles(hostRoot));
  const manager = found.kind === "found" ? found.host.manager : "systemd";
  const isManaged = planned.kind === "edit" && (manager === "talos" || manager === "nixos");
  const plan = isManaged ? byHandOn(manager, planned) : planned;
  if (plan.kind !== "by-hand" || !isInEffect(runtime)) return plan;
  return { kind: "done", mode: plan.mode, path: "The configuration of the runtime" };
}

/** Other files of containerd's configuration with the key that excludes ours. */
async function conflicts(hostRoot: string, { name }: Runtime, edited: string): Promise<readonly string[]> {
  if (name !== "containerd") return [];
  const files = (await configuredBinDirs(hostRoot, undefined)).filter(
    ({ single, file }) => single !== undefined && file !== edited,
  );
  return files.map(({ file }) => file);
}

/** A node without the guard is better than one without an agent. */
async function installOrGoOn(call: Call): Promise<ExitCode> {
  try {
    await install(call);
  } catch (error) {
    call.io.stderr(`unghost cni install: ${describeError(error)}. The node has no CNI guard.\n`);
  }
  return ExitCode.ok;
}

function isInEffect({ binDirs: [first] }: Runtime): boolean {
  return first?.replace(/\/+$/, "") === GUARD_BIN_DIR;
}

function describePlan({ name, version }: Runtime, plan: SearchPathPlan): string {
  if (plan.kind === "by-hand")
    return `${name} ${version}: ${GUARD_BIN_DIR} is made ready, and the rest is to be done by hand.\n${plan.message} ${plan.next.trimEnd()}\n`;
  const only =
    "This runtime has room for one plugin directory. The guard's directory gets an entry for every plugin, and the agent adds those that are installed later: without the agent, run `unghost cni install` again after each installation of a network add-on, or its pods do not start.\n";
  const change =
    plan.kind === "done" ? `${plan.path} names ${GUARD_BIN_DIR} already` : `${plan.path} will name ${GUARD_BIN_DIR}`;
  const start = plan.kind === "done" ? "" : " The runtime reads it at its next start.";
  return `${name} ${version}: ${change}${plan.mode === "first" ? ", in front of the other plugin directories" : ""}.${start}\n${plan.mode === "only" ? only : ""}`;
}

async function takeEffect(call: Call, isInEffectNow: boolean): Promise<ExitCode> {
  const { flags, settings, io } = call;
  if (isInEffectNow) return ExitCode.ok;
  const command = restartCommand(settings.hostRoot);
  if (flags.restart !== true) {
    io.stdout(
      `It takes effect with the next start of the runtime${command === undefined ? "" : `: ${command.join(" ")}`}.\n`,
    );
    return ExitCode.ok;
  }
  if (command === undefined || settings.hostRoot !== "/" || !systemdRuns()) {
    io.stderr("The service of the runtime cannot be restarted from here: restart it by hand.\n");
    return ExitCode.findings;
  }
  if (!(await agreed(`Restart the runtime (${command.join(" ")})? Running containers keep running.`, call)))
    return ExitCode.ok;
  const complaint = await runCommand(command);
  if (complaint === undefined) return ExitCode.ok;
  io.stderr(`${command.join(" ")} failed: ${complaint}. See its log.\n`);
  return ExitCode.findings;
}

function restartCommand(hostRoot: string): readonly string[] | undefined {
  const found = detect(hostFiles(hostRoot));
  const [only] = found.kind === "found" ? found.host.services : [];
  return only === undefined ? undefined : ["systemctl", "restart", only.service];
}

async function agreed(question: string, { flags, io }: Call): Promise<boolean> {
  if (flags.yes === true) return true;
  if (!io.stdinIsTerminal || !io.stdoutIsTerminal) {
    io.stderr(`${question} There is no terminal to ask on: add --yes. Nothing was changed.\n`);
    return false;
  }
  if ((await askYesNo(question, io)) === "yes") return true;
  io.stderr("Nothing was changed.\n");
  return false;
}

async function status({ settings, io, runtime }: Call): Promise<ExitCode> {
  const { hostRoot: root } = settings;
  const confDir = runtime?.confDir ?? "/etc/cni/net.d";
  const known = guardStatus({ root, confDir, searched: runtime?.binDirs });
  const document = { apiVersion: "unghost.dev/v1", kind: "CniGuardStatus", ...known };
  await print(settings, document, () => renderStatus(known), io);
  if (runtime === undefined) return ExitCode.unknown;
  return known.installed && known.inEffect ? ExitCode.ok : ExitCode.findings;
}

function renderStatus(known: GuardStatus): string {
  const lines = [
    `Guard:      ${known.installed ? "installed" : "not installed"}, ${known.inEffect ? "in effect" : "not in effect"}`,
    `Searched:   ${known.searched?.join(", ") ?? "unknown: the runtime does not answer"}`,
    ...known.networks.flatMap(({ network, file, plugins }) => [
      `Network:    ${network} (${file})`,
      ...plugins.map(
        ({ name, path, guarded }) =>
          `  ${name.padEnd(20)} ${guarded ? "guarded" : "not guarded"}  ${path ?? "not found"}`,
      ),
    ]),
    `Recorded:   ${known.attachments} attachments`,
    `Queue:      ${known.queue} DELs`,
    ...Object.entries(known.decisions).map(([code, times]) => `  ${code.padEnd(32)} ${times}`),
  ];
  return `${lines.join("\n")}\n`;
}

/** The configuration, then the directory: a runtime that still searches ours alone keeps it until it is restarted. */
async function uninstall(call: Call): Promise<ExitCode> {
  const { flags, settings, io, runtime } = call;
  const { hostRoot } = settings;
  const known = guardStatus({ root: hostRoot, confDir: "/etc/cni/net.d", searched: runtime?.binDirs });
  if (flags.dryRun === true) {
    io.stdout(
      `Would take ${GUARD_BIN_DIR} off the runtime's search path and remove the guard. ${known.queue} DELs wait.\n`,
    );
    return ExitCode.ok;
  }
  if (!(await agreed("Remove the CNI guard?", call))) return ExitCode.refused;
  if (known.queue > 0 && hostRoot === "/") await replayQueue(GUARD_STATE_DIR);
  const { queue } = guardStatus({ root: hostRoot, confDir: "", searched: undefined });
  if (queue > 0 && flags.force !== true) {
    io.stderr(
      `${queue} DELs wait for their plugin, and what they release would leak. Nothing was removed. Try again later, or use --force.\n`,
    );
    return ExitCode.refused;
  }
  const restored = restoreConfig(hostRoot);
  if (restored.kind === "refused") {
    io.stderr(`${restored.message} ${restored.next}\n`);
    return ExitCode.refused;
  }
  if (restored.kind === "restored") io.stdout(`${restored.path} is as it was before.\n`);
  const restarted = restored.kind === "restored" ? await takeEffect(call, false) : ExitCode.ok;
  if (restarted !== ExitCode.ok) return restarted;
  const answers = (): Promise<Runtime | undefined> => runningRuntime(settings, io);
  const now =
    flags.restart === true
      ? await pollUntil(answers, { everyMs: 500, timeoutMs: RESTARTED_MS, sleep })
      : await answers();
  const others = now?.binDirs.filter((dir) => dir.replace(/\/+$/, "") !== GUARD_BIN_DIR) ?? [];
  if (others.length === 0) {
    io.stderr(
      `The running runtime ${now === undefined ? "does not answer, and may search" : "searches"} ${GUARD_BIN_DIR} alone: it stays until the runtime is restarted. Then run this again.\n`,
    );
    return ExitCode.findings;
  }
  removeGuard(hostRoot);
  io.stdout("The CNI guard is removed.\n");
  return ExitCode.ok;
}
