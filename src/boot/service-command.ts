import type { HostFiles } from "./install/host-files.ts";
import { type UnitSettings, unitSettings } from "./unit-settings.ts";

/**
 * The command that the service manager will run.
 * - `none`: there is no such service.
 * - `unknown`: there is a service, and its files do not show its command.
 */
export type ServiceCommand =
  | { readonly kind: "none" }
  | { readonly kind: "unknown"; readonly reason: string }
  | { readonly kind: "command"; readonly from: string; readonly program: string; readonly args: readonly string[] };

/** systemd's own search path for a program that is named without a directory. */
const PROGRAM_DIRS = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"] as const;

export function serviceCommand(service: string, files: HostFiles): ServiceCommand {
  const unit = unitSettings(`${service}.service`, files);
  return unit === undefined ? initScriptCommand(service, files) : unitCommand(unit, files);
}

function unitCommand(unit: UnitSettings, files: HostFiles): ServiceCommand {
  const { from } = unit;
  const [line, ...more] = unit.list("ExecStart");
  if (line === undefined) return { kind: "unknown", reason: `${from} has no ExecStart=` };
  if (more.length > 0) return { kind: "unknown", reason: `${from} has more than one ExecStart=` };
  for (const key of ["RootDirectory", "RootImage", "ExecSearchPath"]) {
    if (unit.list(key).length > 0) return { kind: "unknown", reason: `${from} sets ${key}=` };
  }
  const words = wordsIn(line.replace(/^[-:+!|]*@?[-:+!|]*/, ""));
  if (words === undefined) return { kind: "unknown", reason: `ExecStart= of ${from} has an open quote` };
  // With the prefix @ the second word is argv[0] of the program.
  const isRenamed = /^[-:+!|]*@/.test(line);
  const [program = "", ...args] = isRenamed ? words.toSpliced(1, 1) : words;
  return command(program, args, from, unit.environment(), files);
}

function command(
  program: string,
  args: readonly string[],
  from: string,
  environment: ReadonlyMap<string, string>,
  files: HostFiles,
): ServiceCommand {
  const path = program.startsWith("/")
    ? program
    : PROGRAM_DIRS.map((dir) => `${dir}/${program}`).find((place) => files.kind(place) !== "absent");
  if (path === undefined || /[$%`]/.test(path)) {
    return { kind: "unknown", reason: `the program that ${from} starts (${program}) is unknown from the file` };
  }
  const expanded = args.flatMap((word) => expand(word, environment));
  return { kind: "command", from, program: path, args: expanded };
}

/** Like systemd: `${NAME}` inside a word, `$NAME` alone as any number of words, `$$` and `%%` as escapes. */
function expand(word: string, environment: ReadonlyMap<string, string>): readonly string[] {
  const [, alone] = /^\$([A-Za-z_]\w*)$/.exec(word) ?? [];
  if (alone !== undefined) return (environment.get(alone) ?? "").split(/\s+/).filter(Boolean);
  const inside = word.replace(/\$\$|%%|\$\{([A-Za-z_]\w*)\}/g, (found, name: string | undefined) =>
    name === undefined ? found.slice(1) : (environment.get(name) ?? ""),
  );
  return [inside];
}

/** Splits words like systemd: quotes group, a backslash escapes. */
function wordsIn(line: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? "";
    if (char === "\\" && quote !== "'") {
      at += 1;
      word = (word ?? "") + (line[at] ?? "");
    } else if (quote !== "") {
      if (char === quote) quote = "";
      else word = (word ?? "") + char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}

/** OpenRC: `command=` of the init script, if it is a plain value or one that conf.d may override. */
function initScriptCommand(service: string, files: HostFiles): ServiceCommand {
  const from = `/etc/init.d/${service}`;
  const script = files.read(from);
  if (script === undefined) return { kind: "none" };
  const settings = shellVariables(files.read(`/etc/conf.d/${service}`) ?? "");
  const value = settings.get("command") ?? shellVariables(script).get("command");
  const [, name, fallback] = /^\$\{(\w+):-([^}]*)\}$/.exec(value ?? "") ?? [];
  const program = name === undefined ? (value ?? "") : (settings.get(name) ?? fallback ?? "");
  if (program === "") return { kind: "unknown", reason: `${from} does not name the program that it starts` };
  return command(program, [], from, new Map(), files);
}

function shellVariables(text: string): ReadonlyMap<string, string> {
  const lines = text.matchAll(/^\s*(?:export\s+)?([A-Za-z_]\w*)=(?:"([^"]*)"|'([^']*)'|(\S*))/gm);
  return new Map([...lines].map(([, name = "", double, single, bare]) => [name, double ?? single ?? bare ?? ""]));
}
