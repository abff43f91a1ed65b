import { RUNTIME_UNITS, type RuntimeUnit, type RuntimeUnitName } from "../../host/distributions.ts";

export function runtimeUnit(name: RuntimeUnitName): RuntimeUnit {
  const found = RUNTIME_UNITS.find((known) => known.name === name);
  if (found === undefined) throw new Error(`no runtime unit is called ${name}`);
  return found;
}

/** A distribution's service on this host: k3s may be installed under another name. */
export interface RuntimeService {
  readonly distribution: RuntimeUnit;
  readonly service: string;
  /** The file in which it was found. */
  readonly seenAt: string;
}

/** The service manager. NixOS and Talos are built from a configuration: changes on a running host are lost. */
export type ServiceManager = "systemd" | "openrc" | "nixos" | "talos";

export interface Host {
  readonly manager: ServiceManager;
  /** At least one, except on Talos. */
  readonly services: readonly RuntimeService[];
}

/** How the installed hook is called. */
export interface HookSettings {
  /** Absolute path of the executable on the host. */
  readonly program: string;
  readonly stateDir: string;
  /** Deadline of the step before the runtime. */
  readonly deadlineSeconds: number;
  /** More arguments for every `unghost boot`, as given to install. */
  readonly bootArgs: readonly string[];
  /** Also install the agent. */
  readonly agent?: boolean;
  /** Also keep the files of CNI plug-ins durable, with a separate service. */
  readonly keep?: boolean;
}

export const DEFAULT_STATE_DIR = "/var/lib/unghost";

/**
 * The step after the start waits for the socket from the start of the service, and CNI agents need minutes after that.
 */
export const AFTER_SECONDS = 300;

/** The hook is killed this long after its own deadline. */
export const GRACE_SECONDS = 30;
/** Between SIGTERM and SIGKILL, where `timeout` ends it. */
const KILL_SECONDS = 10;

export type HookStep = "before" | "after";

export function hookCommand(step: HookStep, settings: HookSettings): readonly string[] {
  const { program, stateDir, bootArgs } = settings;
  const mode = step === "after" ? ["--after"] : [];
  return [
    program,
    "boot",
    ...mode,
    "--deadline",
    `${deadlineOf(step, settings)}s`,
    ...stateFlag(stateDir),
    ...bootArgs,
  ];
}

function stateFlag(stateDir: string): readonly string[] {
  return stateDir === DEFAULT_STATE_DIR ? [] : ["--state-dir", stateDir];
}

export function agentCommand({ program, stateDir }: HookSettings): readonly string[] {
  return [program, "agent", ...stateFlag(stateDir)];
}

export function keepCommand({ program }: HookSettings): readonly string[] {
  return [program, "keep"];
}

/** The hook's step under timeout(1), for a service manager without a time limit. */
export function limitedHookCommand(step: HookStep, settings: HookSettings): readonly string[] {
  return limited(step, settings, hookCommand(step, settings));
}

function limited(step: HookStep, settings: HookSettings, command: readonly string[]): readonly string[] {
  const seconds = deadlineOf(step, settings) + GRACE_SECONDS;
  return ["timeout", "-k", String(KILL_SECONDS), String(seconds), ...command];
}

/**
 * In the unit of another service journald names a line after the command of the unit, here env, unless the step opens its
 * own stream. Without systemd-cat the step runs all the same.
 */
const AS_UNGHOST = 'command -v systemd-cat >/dev/null && exec systemd-cat -t unghost "$@"; exec "$@"';

/** The hook's step as a command of another service's unit, with its own name in the journal. */
export function embeddedHookCommand(settings: HookSettings): readonly string[] {
  return limited("before", settings, ["sh", "-c", AS_UNGHOST, "sh", ...hookCommand("before", settings)]);
}

function deadlineOf(step: HookStep, { deadlineSeconds }: HookSettings): number {
  return step === "after" ? AFTER_SECONDS : deadlineSeconds;
}
