import { hostname } from "node:os";
import type { OutputFormat } from "../report/output-format.ts";
import { findHostRoot } from "../snapshot/host-root.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import type { Io } from "./io.ts";
import {
  absolutePath,
  duration,
  endpoint,
  list,
  outputFormat,
  type Raw,
  text,
  truth,
  wholeNumber,
} from "./setting-values.ts";

/** What every command that looks at a node needs to know. Flag beats environment beats file beats default. */
export interface NodeSettings {
  readonly runtimeEndpoint: string | undefined;
  readonly cniCacheDir: string;
  /** Where multus keeps its delegate cache; by default what its own configuration says. */
  readonly multusDir: string | undefined;
  readonly stateDir: string;
  readonly kubeconfig: string | undefined;
  readonly node: string;
  readonly noKube: boolean;
  readonly hostRoot: string;
  readonly output: OutputFormat;
  /** Deadline of each source when looking. Acting has deadlines of its own. */
  readonly timeoutMs: number;
  /** How long a sandbox must have been dead before it is a finding while a kubelet is alive. */
  readonly minAgeMs: number;
  /** How long a sandbox may be in the making. Kubelet gives up after 4 min, containerd's rollback takes 1 more. */
  readonly inflightGraceMs: number;
  /** Set with --inflight-grace: then it also holds for a creation whose caller has given up. */
  readonly abandonedGraceMs?: number;
  /** How long a volume may wait to be attached. External attachers retry for minutes before anything is wrong. */
  readonly volumeAttachmentAgeMs: number;
  readonly concurrency: number;
  readonly only: readonly string[];
  readonly skip: readonly string[];
  readonly verbose: boolean;
}

/** As the command line gives them: everything optional, everything still a string but switches and lists. */
export interface NodeFlags {
  readonly runtimeEndpoint?: string;
  readonly cniCacheDir?: string;
  readonly multusDir?: string;
  readonly stateDir?: string;
  readonly kubeconfig?: string;
  readonly node?: string;
  readonly noKube?: boolean;
  readonly hostRoot?: string;
  readonly config?: string;
  readonly output?: string;
  readonly timeout?: string;
  readonly minAge?: string;
  readonly inflightGrace?: string;
  readonly volumeAttachmentAge?: string;
  readonly concurrency?: string;
  readonly only?: readonly string[];
  readonly skip?: readonly string[];
  readonly verbose?: boolean;
}

export type SettingKey = Exclude<keyof NodeFlags, "config">;

export const SETTING_KEYS: readonly SettingKey[] = [
  "runtimeEndpoint",
  "cniCacheDir",
  "multusDir",
  "stateDir",
  "kubeconfig",
  "node",
  "noKube",
  "hostRoot",
  "output",
  "timeout",
  "minAge",
  "inflightGrace",
  "volumeAttachmentAge",
  "concurrency",
  "only",
  "skip",
  "verbose",
];

/** Nothing answers faster than this. */
const SHORTEST_TIMEOUT_MS = 10;

export async function resolveSettings(flags: NodeFlags, io: Pick<Io, "env">): Promise<NodeSettings> {
  const file = await readConfigFile(askedConfigFile(flags, io.env), SETTING_KEYS);
  return settingsFrom(rawSettings(flags, io.env, file));
}

export function askedConfigFile({ config }: Pick<NodeFlags, "config">, env: Io["env"]): string | undefined {
  return config ?? env["UNGHOST_CONFIG"];
}

/** A setting by whoever set it; undefined: the default holds. */
export type RawSettings = (key: SettingKey) => Raw | undefined;

export function rawSettings(flags: NodeFlags, env: Io["env"], file: ConfigFile): RawSettings {
  return (key) =>
    fromFlagOrEnvironment(key, flags, env) ?? fromFile(key, file) ?? fromPodSpec(key, env) ?? fromMount(key, env);
}

/** A pod that mounts the node's root directory without naming it, as `kubectl debug node` does. */
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
  // A key without a value says nothing, as in every other YAML file of a node.
  if (inFile === undefined || inFile.value === null) return undefined;
  return { value: inFile.value, from: `${inFile.place}: ${key}` };
}

/** What a DaemonSet calls the node in its pods' environment, by the usual name. */
function fromPodSpec(key: SettingKey, env: Io["env"]): Raw | undefined {
  const name = env["NODE_NAME"];
  return key === "node" && name ? { value: name, from: "NODE_NAME" } : undefined;
}

/** Throws a SettingsError for the first setting that makes no sense. */
export function settingsFrom(raw: RawSettings): NodeSettings {
  const inflightGraceMs = duration(raw("inflightGrace"), 0);
  return {
    runtimeEndpoint: endpoint(raw("runtimeEndpoint")),
    cniCacheDir: absolutePath(raw("cniCacheDir")) ?? "/var/lib/cni",
    multusDir: absolutePath(raw("multusDir")),
    stateDir: absolutePath(raw("stateDir")) ?? "/var/lib/unghost",
    kubeconfig: text(raw("kubeconfig")),
    node: text(raw("node")) ?? hostname(),
    noKube: truth(raw("noKube")) ?? false,
    hostRoot: absolutePath(raw("hostRoot")) ?? "/",
    output: outputFormat(raw("output")),
    timeoutMs: duration(raw("timeout"), SHORTEST_TIMEOUT_MS) ?? 4000,
    minAgeMs: duration(raw("minAge"), 0) ?? 10 * 60_000,
    inflightGraceMs: inflightGraceMs ?? 10 * 60_000,
    ...(inflightGraceMs === undefined ? {} : { abandonedGraceMs: inflightGraceMs }),
    volumeAttachmentAgeMs: duration(raw("volumeAttachmentAge"), 0) ?? 5 * 60_000,
    concurrency: wholeNumber(raw("concurrency"), 1, 256) ?? 32,
    only: list(raw("only")),
    skip: list(raw("skip")),
    verbose: truth(raw("verbose")) ?? false,
  };
}

function environmentName(key: string): string {
  return `UNGHOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
