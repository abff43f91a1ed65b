import { accessSync, constants } from "node:fs";
import { join, resolve } from "node:path";
import * as v from "valibot";
import { findHostRoot, isPod, namedFile } from "../../host/paths.ts";
import { readRegularFile } from "../../host/safe-fs.ts";
import { errorCode } from "../../host/source.ts";
import { type PathTrust, provePath } from "../../host/trusted-path.ts";
import type { ConfigFile } from "./file.ts";
import { type Kind, quoted, SettingsError } from "./kinds.ts";
import { environmentName, kebab, NODE, type NodeFlags, type Values, valuesOf } from "./table.ts";

export type Env = Readonly<Record<string, string | undefined>>;

/** A value with its source: a flag, a variable, or a position in the file and the key there. */
export interface Given {
  readonly value: unknown;
  readonly from: string;
  readonly key?: string;
}

/** Settings of every command that scans a node. Flag overrides environment overrides file overrides default. */
export interface NodeSettings extends Values<typeof NODE> {
  /** Set with --inflight-grace: then it also applies to a creation whose caller timed out. */
  readonly abandonedGraceMs?: number;
}

/** Settings of a command that uses the state directory. */
export async function resolveSettings(flags: NodeFlags, io: { readonly env: Env }): Promise<NodeSettings> {
  const settings = await readSettings(flags, io);
  await requireStateDir(settings);
  return settings;
}

export async function readSettings(flags: NodeFlags, { env }: { readonly env: Env }): Promise<NodeSettings> {
  const file = await readConfigFile(flags, env);
  if (file !== undefined) {
    const [first, ...more] = [...file.problems, ...(await problemsOfAgent(file))];
    const others = more.length === 0 ? "" : ` (and ${more.length} more: \`unghost config --check\` names them all)`;
    if (first !== undefined) throw new SettingsError(first + others);
  }
  return nodeSettings(givenSettings(flags, env, file));
}

/** A call on a mount that hangs would end neither by a timer nor by a signal, so nothing is tried there. */
async function requireStateDir(settings: NodeSettings): Promise<void> {
  if (process.platform !== "linux") return;
  const { hungMountOn } = await import("../../host/hung-mounts.ts");
  const dir = stateDirOf(settings);
  const mount = await hungMountOn(dir);
  if (mount === undefined) return;
  throw new SettingsError(
    `the state directory ${dir} cannot be used: the file system mounted at ${mount.point} (${mount.type}) does not answer. Unmount it (umount -l) or bring its server back; --state-dir names another directory, without the journal of this one`,
  );
}

/** An error in the agent's section fails every command, so that it is found before the agent starts. */
async function problemsOfAgent(file: ConfigFile): Promise<readonly string[]> {
  if (!file.values.has("agent")) return [];
  const checked = (await import("./policy.ts")).checkAgent(file, new Map());
  return checked.ok ? [] : checked.problems;
}

const DEFAULT_PATH = "/etc/unghost/config.yaml";

/** The path of the configuration file, existing or not. */
export function configPath({ config }: Pick<NodeFlags, "config">, env: Env): string {
  return config ?? env["UNGHOST_CONFIG"] ?? DEFAULT_PATH;
}

/** The file, valid or not. Undefined if there is none, and none was requested. */
export async function readConfigFile(flags: Pick<NodeFlags, "config">, env: Env): Promise<ConfigFile | undefined> {
  const path = configPath(flags, env);
  const isRequested = (flags.config ?? env["UNGHOST_CONFIG"]) !== undefined;
  // Only nodes have one by default. On Windows, any user may create the directory of this name.
  if (!isRequested && process.platform !== "linux") return undefined;
  const trust = proveConfig(path, env);
  if (trust.kind === "refused")
    throw new SettingsError(`the configuration file ${path} is not used: ${trust.detail}. ${trust.next}`);
  const file = readRegularFile(namedFile(path));
  if (file.kind === "gone" && !isRequested) return undefined;
  if (file.kind !== "content") {
    const why = file.kind === "gone" ? " (ENOENT)" : `: it ${file.reason}`;
    throw new SettingsError(`cannot read the configuration file ${path}${why}`);
  }
  // Loading the parser takes a tenth of a whole scan.
  const { parseConfig } = await import("./file.ts");
  return parseConfig(path, file.text);
}

/** It decides what root does: where the API server is, where changes are written down, how long a proof needs. */
function proveConfig(path: string, env: Env): PathTrust {
  if (process.geteuid?.() !== 0) return { kind: "trusted" };
  // The directory of a ConfigMap is writable for all by its mode; kubelet mounts it read-only, and only root reaches it elsewhere.
  return provePath("/", resolve(path), isPod(env) ? isOnReadOnlyMount : undefined);
}

function isOnReadOnlyMount(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return errorCode(error) === "EROFS";
  }
}

export type NodeKey = keyof typeof NODE;
/** Undefined: the default applies. */
export type GivenSettings = (key: NodeKey) => Given | undefined;

export function givenSettings(flags: NodeFlags, env: Env, file: ConfigFile | undefined): GivenSettings {
  return (key) => givenOutside(key, flags, env) ?? fromFile(key, file) ?? fromPod(key, env);
}

/** By flag or environment. */
export function givenOutside<Key extends string>(
  key: Key,
  flags: Readonly<Partial<Record<NoInfer<Key>, unknown>>>,
  env: Env,
): Given | undefined {
  const flag = flags[key];
  if (flag !== undefined && !(Array.isArray(flag) && flag.length === 0)) {
    return { value: flag, from: `--${kebab(key)}` };
  }
  const from = environmentName(key);
  return env[from] ? { value: env[from], from } : undefined;
}

/** A key without a value is not set, as in other YAML files of a node. */
function fromFile(key: string, file: ConfigFile | undefined): Given | undefined {
  const value = file?.values.get(key) ?? undefined;
  return file === undefined || value === undefined ? undefined : { value, from: file.placeOf([key]), key };
}

/** The usual variable of a DaemonSet's pods, and the node's root where `kubectl debug node` mounts it. */
function fromPod(key: NodeKey, env: Env): Given | undefined {
  if (key === "node" && env["NODE_NAME"]) return { value: env["NODE_NAME"], from: "NODE_NAME" };
  const root = key === "hostRoot" ? findHostRoot(env) : "/";
  return root === "/" ? undefined : { value: root, from: `the node's root directory, found at ${root}` };
}

/** Throws a SettingsError for the first invalid setting. */
export function nodeSettings(given: GivenSettings): NodeSettings {
  const parsed = Object.entries(NODE).map(([key, kind]) => {
    const one = given(key as NodeKey);
    return [key, one && parseGiven<unknown>(kind, one)];
  });
  const settings = valuesOf(NODE, Object.fromEntries(parsed));
  return given("inflightGrace") === undefined ? settings : { ...settings, abandonedGraceMs: settings.inflightGraceMs };
}

/** Throws a SettingsError that names the place to correct. */
export function parseGiven<Value>({ schema }: Pick<Kind<Value>, "schema">, { value, from, key }: Given): Value {
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  throw new SettingsError(problemAt(key === undefined ? from : `${from}: ${key}`, parsed.issues[0], value));
}

/** Errors about keys or several values, and those that quote the value themselves. */
const COMPLETE: ReadonlySet<string> = new Set(["raw_check", "raw_transform", "partial_check", "loose_object"]);

export function problemAt(place: string, { type, message }: v.BaseIssue<unknown>, value: unknown): string {
  return `${place}: ${message}${COMPLETE.has(type) ? "" : `, got ${quoted(value)}`}`;
}

/** The state directory is on the host: a container's own would be lost with it. */
export function stateDirOf({ hostRoot, stateDir }: Pick<NodeSettings, "hostRoot" | "stateDir">): string {
  return join(hostRoot, stateDir);
}
