import { findHostRoot } from "../host/host-root.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import type { Io } from "./io.ts";
import { type NodeFlags, type NodeSettings, readSettings, SETTING_KEYS, type SettingKey } from "./node-settings.ts";
import type { Raw } from "./setting-values.ts";

export async function resolveSettings(flags: NodeFlags, io: Pick<Io, "env">): Promise<NodeSettings> {
  const file = await readConfigFile(askedConfigFile(flags, io.env), SETTING_KEYS);
  return settingsFrom(rawSettings(flags, io.env, file));
}

export function askedConfigFile({ config }: Pick<NodeFlags, "config">, env: Io["env"]): string | undefined {
  return config ?? env["UNGHOST_CONFIG"];
}

/** A setting from any source; undefined: the default applies. */
export type RawSettings = (key: SettingKey) => Raw | undefined;

export function rawSettings(flags: NodeFlags, env: Io["env"], file: ConfigFile): RawSettings {
  return (key) =>
    fromFlagOrEnvironment(key, flags, env) ?? fromFile(key, file) ?? fromPodSpec(key, env) ?? fromMount(key, env);
}

/** A pod with the node's root directory mounted, but without --host-root, as with `kubectl debug node`. */
function fromMount(key: SettingKey, env: Io["env"]): Raw | undefined {
  const root = key === "hostRoot" ? findHostRoot(env) : "/";
  return root === "/" ? undefined : { value: root, from: `the node's root directory, found at ${root}` };
}

export function fromFlagOrEnvironment<Key extends string>(
  key: Key,
  flags: Readonly<Partial<Record<NoInfer<Key>, unknown>>>,
  env: Io["env"],
): Raw | undefined {
  const flag = flags[key];
  if (flag !== undefined && !(Array.isArray(flag) && flag.length === 0)) {
    return { value: flag, from: `--${kebab(key)}` };
  }
  const variable = environmentName(key);
  const inEnvironment = env[variable];
  return inEnvironment === undefined || inEnvironment === "" ? undefined : { value: inEnvironment, from: variable };
}

function fromFile(key: string, file: ConfigFile): Raw | undefined {
  const inFile = file.get(key);
  // A key without a value is not set, as in other YAML files of a node.
  if (inFile === undefined || inFile.value === null) return undefined;
  return { value: inFile.value, from: `${inFile.place}: ${key}` };
}

/** The node name in the environment of a DaemonSet's pods, by the usual variable. */
function fromPodSpec(key: SettingKey, env: Io["env"]): Raw | undefined {
  const name = env["NODE_NAME"];
  return key === "node" && name ? { value: name, from: "NODE_NAME" } : undefined;
}

/** Throws a SettingsError for the first invalid setting. */
export function settingsFrom(raw: RawSettings): NodeSettings {
  const settings = readSettings(raw);
  return raw("inflightGrace") === undefined ? settings : { ...settings, abandonedGraceMs: settings.inflightGraceMs };
}

export function environmentName(key: string): string {
  return `UNGHOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
