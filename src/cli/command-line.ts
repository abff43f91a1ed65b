import { shellWord } from "../host/text.ts";
import { commandPlace } from "../report/command-place.ts";
import type { CommandLine } from "../report/words.ts";
import type { Env } from "./settings/read.ts";
import { kebab } from "./settings/table.ts";

type FlagValue = string | boolean | readonly string[] | undefined;

/** `flags` as the command line gave them; undefined and false are left out. */
export function commandLine(
  flags: Readonly<Record<string, FlagValue>>,
  targets: readonly string[],
  env: Env,
): CommandLine {
  const given = Object.entries(flags).flatMap(([key, value]) => flagWords(`--${kebab(key)}`, value));
  return (name, ...more) =>
    [...commandPlace(env), "unghost", name, ...targets, ...given, ...more].map(shellWord).join(" ");
}

function flagWords(flag: string, value: FlagValue): readonly string[] {
  if (value === undefined || value === false) return [];
  if (value === true) return [flag];
  return typeof value === "string" ? [flag, value] : value.flatMap((one) => [flag, one]);
}
