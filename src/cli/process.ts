import { fstatSync } from "node:fs";
import { getPriority, setPriority } from "node:os";

/**
 * A power cut tears new files until the keeper has reacted. On a node short of CPU time, as after a boot, that took up
 * to three seconds behind 16 processes per core. The agent uses less than half a percent of a CPU.
 */
const NICE_OF: ReadonlyMap<string, number> = new Map([
  ["agent", -10],
  ["keep", -10],
]);

/**
 * A priority that was already set is kept. In a pod it may not be raised, and would have no effect: the kernel divides
 * time between cgroups first, by the pod's CPU request.
 */
export function raisePriority(command: string | undefined): void {
  const nice = NICE_OF.get(command ?? "");
  if (nice === undefined || getPriority() !== 0) return;
  try {
    setPriority(nice);
  } catch {
    // Files are synced with the default priority.
  }
}

/**
 * Engine switches for some commands. The engine reads them from the environment, and only at its start.
 *
 * `useJIT`: no compiler at all, not even for regular expressions. An agent runs for years and works for milliseconds:
 * half the memory is worth a scan that takes twice as long. The build sets what suits all other commands.
 */
const WITHOUT_JIT = { BUN_JSC_useJIT: "0" };

/**
 * The engine has as many threads for files as there are CPUs. Up to eight threads of the keeper wait for a disk that
 * may take seconds, and the rest of the process needs some, too. An unused thread is never started.
 */
const THREADS_BESIDE_KEEPER = { UV_THREADPOOL_SIZE: "12" };

const ENGINE_OF: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map<string, Record<string, string>>([
  ["agent", { ...WITHOUT_JIT, ...THREADS_BESIDE_KEEPER }],
  ["keep", { ...WITHOUT_JIT, ...THREADS_BESIDE_KEEPER }],
]);

/**
 * Starts the process over with the engine that suits the command; it stays the same process. Anybody who sets the switch,
 * either way, wins.
 */
export function restartForCommand(command: string | undefined, env: Readonly<NodeJS.ProcessEnv>): void {
  const engine = ENGINE_OF.get(command ?? "") ?? {};
  if (process.versions["bun"] === undefined || process.execve === undefined) return;
  if (Object.keys(engine).every((name) => env[name] !== undefined)) return;
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(2)], {
    ...engine,
    ...Object.fromEntries(defined),
  });
}

/** Whether standard output is the journal, by systemd's own answer: device and inode of the stream that it connected. */
export function writesToJournald(env: Readonly<NodeJS.ProcessEnv>, fd: number): boolean {
  const [, device, inode] = /^(\d+):(\d+)$/.exec(env["JOURNAL_STREAM"] ?? "") ?? [];
  if (device === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd, { bigint: true });
    return `${dev}:${ino}` === `${device}:${inode}`;
  } catch {
    // Closed by the parent process.
    return false;
  }
}
