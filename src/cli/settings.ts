import { hostname } from "node:os";
import { OUTPUT_FORMATS, type OutputFormat } from "../report/output-format.ts";
import { readConfigFile } from "./config-file.ts";
import { parseDurationMs } from "./duration.ts";
import type { Io } from "./io.ts";
import { SettingsError } from "./settings-error.ts";

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
  "concurrency",
  "only",
  "skip",
  "verbose",
];

export async function resolveSettings(flags: NodeFlags, io: Io): Promise<NodeSettings> {
  const file = await readConfigFile(flags.config ?? io.env["UNGHOST_CONFIG"], SETTING_KEYS);
  const raw = (key: SettingKey): Raw | undefined => {
    const flag = flags[key];
    if (flag !== undefined && !(Array.isArray(flag) && flag.length === 0)) {
      return { value: flag, from: `--${kebab(key)}` };
    }
    const variable = environmentName(key);
    const fromEnv = io.env[variable];
    if (fromEnv !== undefined && fromEnv !== "") return { value: fromEnv, from: variable };
    const fromFile = file.values[key];
    return fromFile === undefined ? undefined : { value: fromFile, from: `${file.path}: ${key}` };
  };
  return {
    runtimeEndpoint: text(raw("runtimeEndpoint")),
    cniCacheDir: absolutePath(raw("cniCacheDir")) ?? "/var/lib/cni",
    multusDir: absolutePath(raw("multusDir")),
    stateDir: absolutePath(raw("stateDir")) ?? "/var/lib/unghost",
    kubeconfig: text(raw("kubeconfig")),
    node: text(raw("node")) ?? io.env["NODE_NAME"] ?? hostname(),
    noKube: truth(raw("noKube")) ?? false,
    hostRoot: absolutePath(raw("hostRoot")) ?? "/",
    output: outputFormat(raw("output")),
    timeoutMs: duration(raw("timeout")) ?? 4000,
    minAgeMs: duration(raw("minAge")) ?? 10 * 60_000,
    inflightGraceMs: duration(raw("inflightGrace")) ?? 10 * 60_000,
    concurrency: wholeNumber(raw("concurrency"), 1, 256) ?? 8,
    only: list(raw("only")),
    skip: list(raw("skip")),
    verbose: truth(raw("verbose")) ?? false,
  };
}

/** Where a value came from goes with it, so that a complaint can name the place to correct. */
interface Raw {
  readonly value: unknown;
  readonly from: string;
}

export function environmentName(key: SettingKey): string {
  return `UNGHOST_${key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

function kebab(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function text(raw: Raw | undefined): string | undefined {
  if (raw === undefined) return undefined;
  if (typeof raw.value === "string" || typeof raw.value === "number") return String(raw.value);
  throw new SettingsError(`${raw.from}: expected text, got ${JSON.stringify(raw.value)}`);
}

function absolutePath(raw: Raw | undefined): string | undefined {
  const value = text(raw);
  if (value === undefined || value.startsWith("/")) return value;
  throw new SettingsError(`${raw?.from}: expected an absolute path, got "${value}"`);
}

function truth(raw: Raw | undefined): boolean | undefined {
  if (raw === undefined) return undefined;
  if (typeof raw.value === "boolean") return raw.value;
  const word = String(raw.value).toLowerCase();
  if (["1", "true", "yes", "on"].includes(word)) return true;
  if (["0", "false", "no", "off"].includes(word)) return false;
  throw new SettingsError(`${raw.from}: expected true or false, got "${word}"`);
}

function duration(raw: Raw | undefined): number | undefined {
  const value = text(raw);
  if (value === undefined) return undefined;
  try {
    return parseDurationMs(value);
  } catch (error) {
    throw new SettingsError(`${raw?.from}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function wholeNumber(raw: Raw | undefined, least: number, most: number): number | undefined {
  const value = text(raw);
  if (value === undefined) return undefined;
  const number = Number(value);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new SettingsError(`${raw?.from}: expected a whole number from ${least} to ${most}, got "${value}"`);
}

function outputFormat(raw: Raw | undefined): OutputFormat {
  const value = text(raw) ?? "table";
  const known = OUTPUT_FORMATS.find((format) => format === value);
  if (known !== undefined) return known;
  throw new SettingsError(`${raw?.from}: expected one of ${OUTPUT_FORMATS.join(", ")}, got "${value}"`);
}

function list(raw: Raw | undefined): readonly string[] {
  if (raw === undefined) return [];
  const values: readonly unknown[] = Array.isArray(raw.value) ? raw.value : [raw.value];
  return values.flatMap((value) => String(value).split(",")).filter((value) => value !== "");
}
