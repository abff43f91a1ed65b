import type { Io } from "./io.ts";

/**
 * Switches of the engine, which reads them from the environment and only when it starts.
 *
 * `useJIT`: no compiler at all, not even for regular expressions: half the memory, and a look takes twice as long.
 * `useBaselineJIT`: code is interpreted, regular expressions are compiled. What runs for half a second is over before
 * compiled code pays for its compilation, and the processors are wanted elsewhere: by the plugins.
 */
export type EngineSwitch = "BUN_JSC_useJIT" | "BUN_JSC_useBaselineJIT";

/**
 * The process stays the same one; it starts over with the switch turned off. Anybody who sets the switch, either way, is
 * heard.
 */
export function restartWithout(name: EngineSwitch, env: Io["env"]): void {
  if (process.versions["bun"] === undefined || process.execve === undefined || env[name] !== undefined) return;
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(2)], {
    ...Object.fromEntries(defined),
    [name]: "0",
  });
}
