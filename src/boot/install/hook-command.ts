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

/** A shutdown waits for this. */
export const RECORD_SECONDS = 10;

/** The hook is killed this long after its own deadline. */
export const GRACE_SECONDS = 30;
/** Between SIGTERM and SIGKILL, where `timeout` ends it. */
const KILL_SECONDS = 10;

export type HookStep = "before" | "after" | "record";

const MODE_FLAGS: Readonly<Record<HookStep, readonly string[]>> = {
  before: [],
  after: ["--after"],
  record: ["--record", "--shutdown"],
};

export function hookCommand(step: HookStep, settings: HookSettings): readonly string[] {
  const { program, stateDir, bootArgs, deadlineSeconds } = settings;
  const seconds = { before: deadlineSeconds, after: AFTER_SECONDS, record: RECORD_SECONDS }[step];
  const mode = MODE_FLAGS[step];
  const state = stateDir === DEFAULT_STATE_DIR ? [] : ["--state-dir", stateDir];
  return [program, "boot", ...mode, "--deadline", `${seconds}s`, ...state, ...bootArgs];
}

/** The same under timeout(1), for a service manager without a time limit. */
export function limitedHookCommand(step: HookStep, settings: HookSettings): readonly string[] {
  const seconds = { before: settings.deadlineSeconds, after: AFTER_SECONDS, record: RECORD_SECONDS }[step];
  return ["timeout", "-k", String(KILL_SECONDS), String(seconds + GRACE_SECONDS), ...hookCommand(step, settings)];
}
