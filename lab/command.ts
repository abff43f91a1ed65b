import { spawn } from "node:child_process";

/** How a command ended. `code` is 128 + signal number for a killed command, as in a shell. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface CommandOptions {
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Milliseconds after which the command and its group are killed; none by default. */
  readonly timeoutMs?: number;
}

/** A grandchild that keeps the pipes open must not delay the caller once the command itself has ended. */
const DRAIN_MS = 500;

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

export function run(command: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const [file, ...args] = command;
  if (file === undefined) throw new Error("run() was given an empty command");
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: options.cwd,
      env: options.env ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let timedOut = false;
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            timedOut = true;
            killGroup(child.pid);
          }, options.timeoutMs);
    child.once("error", (error) => {
      clearTimeout(timer);
      reject(new Error(`could not start ${file}: ${error.message}`, { cause: error }));
    });
    child.once("exit", () => {
      clearTimeout(timer);
      const drain = setTimeout(() => {
        child.stdout.destroy();
        child.stderr.destroy();
      }, DRAIN_MS);
      child.once("close", () => clearTimeout(drain));
    });
    child.once("close", (code, signal) => {
      resolve({
        code: code ?? 128 + (SIGNAL_NUMBERS[signal ?? ""] ?? 0),
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
        timedOut,
      });
    });
    // A command that does not read its input closes the pipe early, which is not an error.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.stdin ?? "");
  });
}

/** Like run(), but throws with its stderr if the command fails. */
export async function runOrThrow(command: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const result = await run(command, options);
  if (result.code === 0) return result;
  const output = (result.stderr.trim() || result.stdout.trim()).slice(-2000);
  const how = result.timedOut ? `did not end within ${options.timeoutMs} ms` : `ended with code ${result.code}`;
  throw new Error(`${command.join(" ").slice(0, 200)} ${how}: ${output}`);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
