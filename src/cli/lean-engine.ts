import type { Io } from "./io.ts";

/** The engine reads its switches from the environment, and only when it starts. */
const JIT_SWITCH = "BUN_JSC_useJIT";

/**
 * For a program that runs for years and works for milliseconds: without a compiler at its side it takes half the memory
 * (55 MB instead of 110 with 110 pods), and a look takes 40 ms of processor time instead of 17. The process stays the
 * same one; it starts over with the switch set. Anybody who sets the switch, either way, is heard.
 */
export function restartWithoutCompiler(env: Io["env"]): void {
  if (process.versions["bun"] === undefined || process.execve === undefined || env[JIT_SWITCH] !== undefined) return;
  const defined = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  process.execve(process.execPath, [process.execPath, ...process.argv.slice(2)], {
    ...Object.fromEntries(defined),
    [JIT_SWITCH]: "0",
  });
}
