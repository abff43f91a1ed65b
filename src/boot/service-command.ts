import type { HostFiles } from "./install/detect.ts";

/** A systemd unit with its drop-ins, as systemd merges them. */
export interface UnitSettings {
  /** The file with the effective ExecStart=, for messages. */
  readonly from: string;
  /** Every value of a key in [Service]; an empty assignment resets the list. */
  list(key: string): readonly string[];
  environment(): ReadonlyMap<string, string>;
}

/** In systemd's order: the first directory with a file hides the others. */
const UNIT_DIRS = [
  "/etc/systemd/system.control",
  "/run/systemd/system.control",
  "/run/systemd/transient",
  "/run/systemd/generator.early",
  "/etc/systemd/system",
  "/etc/systemd/system.attached",
  "/run/systemd/system",
  "/run/systemd/system.attached",
  "/run/systemd/generator",
  "/usr/local/lib/systemd/system",
  "/usr/lib/systemd/system",
  "/lib/systemd/system",
  "/run/systemd/generator.late",
] as const;

/** Returns undefined if there is no such unit, or if it is masked. */
export function unitSettings(unit: string, files: HostFiles): UnitSettings | undefined {
  const main = UNIT_DIRS.map((dir) => `${dir}/${unit}`).find((path) => files.kind(path) !== "absent");
  const text = main === undefined ? undefined : files.read(main);
  if (main === undefined || text === undefined || text.trim() === "") return undefined;
  const parts = [main, ...dropIns(unit, files)];
  const assigned = parts.flatMap((path) =>
    serviceSettings(files.read(path) ?? "").map((setting) => ({ ...setting, path })),
  );
  const list = (key: string): readonly string[] => {
    const values: string[] = [];
    for (const setting of assigned) {
      if (setting.key !== key) continue;
      if (setting.value === "") values.length = 0;
      else values.push(setting.value);
    }
    return values;
  };
  const from = assigned.findLast(({ key, value }) => key === "ExecStart" && value !== "")?.path ?? main;
  return { from, list, environment: () => environmentOf(list, files) };
}

/** Sorted by file name across directories; of two files with one name the first directory's counts. */
function dropIns(unit: string, files: HostFiles): readonly string[] {
  const found = new Map<string, string>();
  for (const folder of [`${unit}.d`, "service.d"]) {
    for (const dir of UNIT_DIRS) {
      for (const name of files.names(`${dir}/${folder}`)) {
        if (name.endsWith(".conf") && !found.has(name)) found.set(name, `${dir}/${folder}/${name}`);
      }
    }
  }
  return [...found].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, path]) => path);
}

function serviceSettings(text: string): readonly { readonly key: string; readonly value: string }[] {
  const settings: { key: string; value: string }[] = [];
  let section = "";
  for (const line of logicalLines(text)) {
    const [, name] = /^\[(.+)\]$/.exec(line) ?? [];
    if (name !== undefined) section = name;
    else if (section === "Service") {
      const at = line.indexOf("=");
      if (at > 0) settings.push({ key: line.slice(0, at).trim(), value: line.slice(at + 1).trim() });
    }
  }
  return settings;
}

/** A backslash at the end joins the next line; comments in between are skipped, as in systemd. */
function logicalLines(text: string): readonly string[] {
  const lines: string[] = [];
  let joined = "";
  for (const raw of text.split("\n")) {
    const line = raw.trim();
    if (/^[#;]/.test(line) || (line === "" && joined === "")) continue;
    if (line.endsWith("\\")) {
      joined += `${line.slice(0, -1)} `;
      continue;
    }
    lines.push((joined + line).trim());
    joined = "";
  }
  return joined === "" ? lines : [...lines, joined.trim()];
}

function environmentOf(list: (key: string) => readonly string[], files: HostFiles): ReadonlyMap<string, string> {
  const variables = new Map<string, string>();
  const assign = (text: string): void => {
    const at = text.indexOf("=");
    if (at > 0) variables.set(text.slice(0, at), unquoted(text.slice(at + 1)));
  };
  for (const value of list("Environment")) {
    for (const [word] of value.matchAll(/"[^"]*"|'[^']*'|(?:[^\s"']|"[^"]*"|'[^']*')+/g)) assign(unquoted(word));
  }
  for (const value of list("EnvironmentFile")) {
    const lines = (files.read(value.replace(/^-/, "")) ?? "").split("\n").map((line) => line.trim());
    for (const line of lines) if (!/^[#;]/.test(line)) assign(line);
  }
  return variables;
}

function unquoted(text: string): string {
  const [, inner] = /^(["'])(.*)\1$/s.exec(text) ? [text, text.slice(1, -1)] : [];
  return inner ?? text;
}

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
