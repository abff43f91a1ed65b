import { basename, dirname } from "node:path";
import {
  checksumOfFile,
  executableOnHost,
  type HostWriter,
  hostWriter,
  installCommands,
  type RunCommand,
  runCommand,
  systemdRuns,
  uninstallCommands,
} from "../../boot/install/apply.ts";
import { CHOICES, type Choice, detect, hostFiles } from "../../boot/install/detect.ts";
import type { HookSettings, Host } from "../../boot/install/hook.ts";
import { DROP_IN_DIR, type InstallPlan, planInstall, type State } from "../../boot/install/plan.ts";
import { nixosModule, talosFiles } from "../../boot/install/platforms.ts";
import { CRIO } from "../../boot/install/units.ts";
import { describeError } from "../../host/source.ts";
import { askYesNo, ExitCode, type Io } from "../io.ts";
import { onOff, positive, text } from "../settings/kinds.ts";
import { type NodeSettings, resolveSettings } from "../settings/read.ts";
import { type NodeFlags, nodeFlags } from "../settings/table.ts";
import { VERSION } from "../version.ts";
import { anyArguments, defineCommand } from "./index.ts";

const DEFAULT_BIN_DIR = "/usr/local/bin";
const DEFAULT_DEADLINE_SECONDS = 60;

const installFlags = {
  stateDir: nodeFlags.stateDir,
  hostRoot: nodeFlags.hostRoot,
  config: nodeFlags.config,
  agent: onOff("Also install and start the agent as a service of the host"),
  distribution: text("Distribution, where it cannot be detected: k3s, rke2, k0s, …", "NAME"),
  binDir: text(`Where the program goes (default ${DEFAULT_BIN_DIR})`, "DIR"),
  deadlineSeconds: positive(`Deadline of the hook (default ${DEFAULT_DEADLINE_SECONDS})`, "N"),
  keep: onOff("Also install the service that runs `unghost keep`: for hosts without the agent"),
  force: onOff("Overwrite files that were changed by hand"),
  dryRun: onOff("Only print what would be written"),
  yes: onOff("Do not ask"),
};

export const installCommand = defineCommand({
  flags: installFlags,
  positional: anyArguments("ARG", "More arguments for the hook (after --)"),
  aliases: { y: "yes" },
  run: async ({ binDir = DEFAULT_BIN_DIR, deadlineSeconds = DEFAULT_DEADLINE_SECONDS, ...flags }, io, ...bootArgs) => {
    const { agent, keep, distribution } = flags;
    const options = await hookOptions(flags, io);
    const asked = { binDir, deadlineSeconds, distribution, bootArgs, agent, keep };
    return await runInstall({ ...options, ...asked, execPath: process.execPath, version: VERSION }, io);
  },
});

/** Common options of install and uninstall. */
export interface HookOptions {
  readonly hostRoot: string;
  readonly stateDir: string;
  readonly force: boolean;
  readonly dryRun: boolean;
  /** Do not ask. Without a terminal there is no question either: running the command is the consent. */
  readonly yes: boolean;
  readonly confirm: (question: string) => Promise<"yes" | "no">;
  /** Whether systemd manages `/`. */
  readonly systemdRuns: boolean;
  readonly runCommand: RunCommand;
}

export type HookIo = Pick<Io, "stdout" | "stderr" | "stdinIsTerminal" | "stdoutIsTerminal">;

export async function agreed(question: string, { yes, confirm }: HookOptions, io: HookIo): Promise<boolean> {
  if (yes || !io.stdinIsTerminal || !io.stdoutIsTerminal) return true;
  if ((await confirm(question)) === "yes") return true;
  io.stderr("Nothing was changed.\n");
  return false;
}

/** Returns whether one failed. On another root, or without systemd, they are only printed. */
export async function runCommands(
  commands: readonly (readonly string[])[],
  options: HookOptions,
  io: HookIo,
): Promise<boolean> {
  if (commands.length === 0) return false;
  const words = commands.map((command) => command.join(" "));
  if (options.hostRoot !== "/" || !options.systemdRuns) {
    io.stdout(`Where systemd runs this host, run: ${words.join(" && ")} (a boot does the same).\n`);
    return false;
  }
  let failed = false;
  for (const command of commands) {
    const complaint = await options.runCommand(command);
    if (complaint === undefined) continue;
    failed = true;
    io.stderr(`${command.join(" ")} failed: ${complaint}. The files are in place; run it again by hand.\n`);
  }
  return failed;
}

type Asked = NodeFlags & Partial<Pick<HookOptions, "force" | "dryRun" | "yes">>;

/** The real dependencies of install and uninstall. */
export async function hookOptions(asked: Asked, io: Io): Promise<HookOptions & { readonly settings: NodeSettings }> {
  const settings = await resolveSettings(asked, io);
  const { force = false, dryRun = false, yes = false } = asked;
  const confirm = (question: string) => askYesNo(question, io);
  const { hostRoot, stateDir } = settings;
  return { settings, hostRoot, stateDir, force, dryRun, yes, confirm, systemdRuns: systemdRuns(), runCommand };
}

export interface InstallOptions extends HookOptions {
  /** What this process was started from (process.execPath). */
  readonly execPath: string;
  /** Where the executable belongs on the host. */
  readonly binDir: string;
  /** One of CHOICES; undefined to detect it. */
  readonly distribution: string | undefined;
  readonly deadlineSeconds: number;
  readonly bootArgs: readonly string[];
  /** Also install the agent. */
  readonly agent?: boolean;
  readonly version: string;
  /** Also install the service that keeps files of CNI plug-ins durable. */
  readonly keep?: boolean;
}

/** Installs the boot hook. Exits 0 installed, 1 incomplete, 2 no distribution found, 3 refused. */
export async function runInstall(options: InstallOptions, io: HookIo): Promise<ExitCode> {
  const chosen = CHOICES.find((name) => name === options.distribution);
  if (options.distribution !== undefined && chosen === undefined) {
    io.stderr(`unghost: --distribution: "${options.distribution}" is none of ${CHOICES.join(", ")}\n`);
    return ExitCode.usage;
  }
  const host = findHost(options, chosen, io);
  if (host === undefined) return ExitCode.unknown;
  const settings: HookSettings = { ...options, program: `${options.binDir}/unghost` };
  if (host.manager === "nixos" || host.manager === "talos") {
    io.stdout(printedInstead(host, settings, options.version));
    if (options.agent === true) io.stdout("The agent: install the Helm chart, which runs on this host as it stands.\n");
    return ExitCode.ok;
  }
  if (/^(node|bun)\b/.test(basename(options.execPath))) {
    io.stderr(`unghost: ${options.execPath} is an engine, not unghost: run install from the built executable.\n`);
    return ExitCode.refused;
  }
  const plan = planInstall(host, settings, hostFiles(options.hostRoot), {
    own: checksumOfFile(options.execPath),
    there: executableOnHost(options.hostRoot, settings.program),
  });
  io.stdout(planLines(host, plan, options));
  const decision = await decide(plan, options, io);
  return decision ?? (await carryOut(plan, options, io));
}

function findHost({ hostRoot }: HookOptions, chosen: Choice | undefined, io: HookIo): Host | undefined {
  try {
    const found = detect(hostFiles(hostRoot), chosen);
    if (found.kind === "found") {
      io.stdout(describeHost(found.host));
      return found.host;
    }
    io.stderr(
      found.kind === "several"
        ? `This host could be any of ${found.names.join(", ")}. Choose one with --distribution.\n`
        : notFound(found.searched, chosen),
    );
  } catch (thrown) {
    io.stderr(`Detecting the distribution failed: ${describeError(thrown)}. Run it as root.\n`);
  }
  return undefined;
}

/** A named family still needs its unit, which decides between server and agent. */
function notFound(searched: string, family: Choice | undefined): string {
  const choices = CHOICES.filter((name) => family === undefined || name.startsWith(`${family}-`)).join(", ");
  return (
    `No ${family === undefined ? "Kubernetes distribution" : `service of ${family}`} was found in ${searched}. ` +
    `Choose the one that will run here with --distribution (${choices}).\n`
  );
}

/** Returns an exit code if there is nothing to do, or nothing may be done. */
async function decide(plan: InstallPlan, options: HookOptions, io: HookIo): Promise<ExitCode | undefined> {
  const all = [...plan.entries, plan.executable];
  const inTheWay = all.filter(({ state }) => state === "changed" || state === "foreign");
  if (inTheWay.length > 0 && !options.force) {
    const words = inTheWay.map(({ path, state }) => {
      return state === "changed" ? `${path} was changed by hand` : `${path} was not written by unghost install`;
    });
    io.stderr(`Nothing was written: ${words.join("; ")}. Inspect it, then replace it with --force.\n`);
    return ExitCode.refused;
  }
  if (all.every(({ state }) => state === "unchanged")) {
    io.stdout("Nothing to do: all of it is in place.\n");
    return ExitCode.ok;
  }
  if (options.dryRun) return ExitCode.ok;
  return (await agreed("Write this?", options, io)) ? undefined : ExitCode.refused;
}

interface Step {
  readonly path: string;
  readonly run: () => Promise<void>;
}

/** The file with the receipt first, then the files it covers, and last what activates them. */
function stepsOf(
  { directories, entries, executable }: InstallPlan,
  { hostRoot, execPath }: InstallOptions,
): readonly Step[] {
  const writer = hostWriter(hostRoot);
  const make = directories.map((path) => ({ path, run: () => writer.makeDirectory(path) }));
  const drop = entries
    .filter(({ state }) => state === "obsolete")
    .map(({ path }) => ({ path, run: () => removeWithDropInDir(path, writer) }));
  const writes = entries.flatMap(({ state, path, entry }) => {
    return entry === undefined || state === "unchanged" ? [] : [{ path, run: () => writer.write(entry) }];
  });
  const { path, state } = executable;
  const copy = state === "unchanged" ? [] : [{ path, run: () => writer.copyExecutable(execPath, path) }];
  return [...make, ...drop, ...writes.slice(0, 1), ...copy, ...writes.slice(1)];
}

async function carryOut(plan: InstallPlan, options: InstallOptions, io: HookIo): Promise<ExitCode> {
  const obsolete = plan.entries.filter(({ state }) => state === "obsolete").map(({ path }) => path);
  // A unit that is not loaded cannot be stopped, which is not an error.
  if (options.hostRoot === "/" && options.systemdRuns) {
    for (const command of uninstallCommands(obsolete).before) await options.runCommand(command);
  }
  for (const { path, run } of stepsOf(plan, options)) {
    try {
      await run();
    } catch (thrown) {
      io.stderr(`${path} could not be written: ${describeError(thrown)}. Run install again once that is solved.\n`);
      return ExitCode.findings;
    }
  }
  const written = plan.entries.filter(({ state, entry }) => state !== "unchanged" && entry !== undefined);
  const started = installCommands(written.map(({ path }) => path)).after;
  const after = started.length > 0 ? started : uninstallCommands(obsolete).after;
  if (await runCommands(after, options, io)) return ExitCode.findings;
  io.stdout("Installed. The hook takes effect at the next start of the runtime, which was not restarted.\n");
  return ExitCode.ok;
}

const MANAGERS = { systemd: "systemd", openrc: "OpenRC", nixos: "NixOS", talos: "Talos" } as const;

/** A directory of drop-ins that install has made holds nothing else. */
async function removeWithDropInDir(path: string, writer: HostWriter): Promise<void> {
  await writer.remove(path);
  if (DROP_IN_DIR.test(dirname(path))) await writer.removeEmptyDirectory(dirname(path));
}

function describeHost({ manager, services }: Host): string {
  if (manager === "talos") return "This host runs Talos.\n";
  const found = services.map(({ distribution, seenAt }) => `${distribution.title} (${seenAt})`).join(", ");
  const crio = services.some(({ distribution }) => distribution.name === "cri-o") ? `${CRIO}\n` : "";
  return `This host runs ${found} under ${MANAGERS[manager]}.\n${crio}`;
}

const STATE_WORDS = {
  new: "write",
  update: "update",
  unchanged: "unchanged",
  changed: "by hand",
  foreign: "not ours",
  obsolete: "remove",
} satisfies Record<State, string>;

/** The files to be written. A dry run shows their content. */
function planLines(
  { manager }: Host,
  { entries, executable }: InstallPlan,
  { dryRun, execPath }: { readonly dryRun: boolean; readonly execPath: string },
): string {
  const line = (state: State, path: string, more = ""): string => `${STATE_WORDS[state].padEnd(10)} ${path}${more}\n`;
  const from = executable.state === "unchanged" ? "" : ` (a copy of ${execPath})`;
  const list = entries.map(({ state, path, entry }) => {
    return line(state, path, entry?.kind === "link" ? ` -> ${entry.target}` : "");
  });
  const texts = entries.flatMap(({ state, path, entry }) => {
    return dryRun && entry?.kind === "file" && state !== "unchanged" ? [`\n--- ${path}\n${entry.content}`] : [];
  });
  const enabled = manager === "openrc" ? "" : "Nothing is enabled: the runtime's unit pulls the others in.\n";
  return [line(executable.state, executable.path, from), ...list, enabled, ...texts].join("");
}

/** For hosts that are built from a configuration: what to add to it. */
function printedInstead(host: Host, settings: HookSettings, version: string): string {
  const nothing = "Nothing was written. Put this into what the host is built from:\n\n";
  if (host.manager === "nixos") return nothing + nixosModule(host.services, settings);
  const { service, manifest, machineConfigPatch } = talosFiles(settings, version);
  return nothing + [manifest, service, machineConfigPatch].join("---\n");
}
