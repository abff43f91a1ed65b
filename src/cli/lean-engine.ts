/**
 * Switches of the engine that some commands turn off. It reads them from the environment, and only when it starts.
 *
 * `useJIT`: no compiler at all, not even for regular expressions. An agent runs for years and works for milliseconds: half
 * the memory is worth that a look takes twice as long.
 * `useBaselineJIT`: code is interpreted, regular expressions are compiled. A healing of half a second is over before
 * compiled code pays for its compilation, and the processors are wanted elsewhere: by the plugins.
 */
const TURNED_OFF = new Map([
  ["agent", "BUN_JSC_useJIT"],
  ["heal", "BUN_JSC_useBaselineJIT"],
]);

/**
 * Starts the process over with the engine that suits the command; it stays the same process. Anybody who sets the switch,
 * either way, is heard.
 */
export function restartForCommand(command: string | undefined, env: Readonly<NodeJS.ProcessEnv>): void {
  const name = TURNED_OFF.get(command ?? "");
  if (process.versions["bun"] === undefined || process.execve === undefined) return;
  if (name === undefined || env[name] !== undefined) return;
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(2)], {
    ...Object.fromEntries(defined),
    [name]: "0",
  });
}
