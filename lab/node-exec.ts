import { type CommandOptions, type CommandResult, run } from "./command.ts";

export interface ExecOptions {
  readonly stdin?: string;
  /** Added to the node's own PATH, HOME and the like; nothing else of the caller's environment is passed. */
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  /** Numeric user and group to run as; root when left out. */
  readonly user?: number;
}

const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The command line that runs a command in all namespaces of the node, and its environment. */
export function enterNode(
  initPid: number,
  binDirs: readonly string[],
  command: readonly string[],
  options: ExecOptions = {},
): { readonly words: readonly string[]; readonly environment: Readonly<Record<string, string>> } {
  const asUser = options.user === undefined ? [] : ["-S", String(options.user), "-G", String(options.user)];
  const environment = { PATH: [...binDirs, SYSTEM_PATH].join(":"), HOME: "/root", LANG: "C.UTF-8", ...options.env };
  return { words: ["nsenter", "-t", String(initPid), "-a", ...asUser, "--", ...command], environment };
}

/** Runs a command in every namespace of the node. */
export function execInNode(
  initPid: number,
  binDirs: readonly string[],
  command: readonly string[],
  options: ExecOptions = {},
): Promise<CommandResult> {
  const bounded =
    options.timeoutMs === undefined
      ? command
      : // nsenter's own child survives nsenter, so the deadline is kept inside the node.
        ["timeout", "--signal=KILL", String(options.timeoutMs / 1000), ...command];
  const { words, environment } = enterNode(initPid, binDirs, bounded, options);
  return run(words, commandOptions(options, environment)).then((result) => ({
    ...result,
    timedOut: options.timeoutMs !== undefined && result.code === 137,
  }));
}

function commandOptions(options: ExecOptions, env: Readonly<Record<string, string>>): CommandOptions {
  const base = options.stdin === undefined ? { env } : { env, stdin: options.stdin };
  return options.timeoutMs === undefined ? base : { ...base, timeoutMs: options.timeoutMs + 5000 };
}
