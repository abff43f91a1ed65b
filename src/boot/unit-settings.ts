import type { HostFiles } from "./install/host-files.ts";

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
