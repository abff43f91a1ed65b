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
  const state = stateDir === DEFAULT_STATE_DIR ? [] : ["--state-dir", stateDir];
  return [program, "boot", ...mode, "--deadline", `${deadlineOf(step, settings)}s`, ...state, ...bootArgs];
}

/** The same under timeout(1), for a service manager without a time limit. */
export function limitedHookCommand(step: HookStep, settings: HookSettings): readonly string[] {
  const seconds = deadlineOf(step, settings) + GRACE_SECONDS;
  return ["timeout", "-k", String(KILL_SECONDS), String(seconds), ...hookCommand(step, settings)];
}

function deadlineOf(step: HookStep, { deadlineSeconds }: HookSettings): number {
  return step === "after" ? AFTER_SECONDS : deadlineSeconds;
}
