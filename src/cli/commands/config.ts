import type { ClassPolicy, MaintenanceWindow } from "../../agent/policy/agent-policy.ts";
import { printable } from "../../host/text.ts";
import { formatDocument } from "../../report/output.ts";
import { ExitCode, type Io } from "../io.ts";
import type { ConfigFile } from "../settings/file.ts";
import { durationText, onOff, SettingsError } from "../settings/kinds.ts";
import {
  type AgentSettings,
  agentOverrides,
  type Checked,
  checkAgent,
  policyFrom,
  valueAt,
} from "../settings/policy.ts";
import {
  configPath,
  type Given,
  type GivenSettings,
  givenSettings,
  type NodeKey,
  nodeSettings,
  readConfigFile,
} from "../settings/read.ts";
import {
  type AgentFlags,
  agentFlags,
  DAYS,
  FLEET,
  type FlagValues,
  LIMITS,
  NODE,
  type NodeFlags,
  nodeFlagAliases,
  nodeFlags,
  SCANNING,
  SERVICE,
  type Settings,
  valuesOf,
  writtenValues,
} from "../settings/table.ts";
import { classIds } from "../targets.ts";
import { defineCommand } from "./index.ts";

const configFlags = {
  ...nodeFlags,
  output: { ...nodeFlags.output, brief: "yaml (the default: a configuration file again) or json" },
  ...agentFlags,
  check: onOff("Only validate the configuration and list every error"),
};

export const configCommand = defineCommand({ flags: configFlags, aliases: nodeFlagAliases, run: runConfig });

/** Shows the effective configuration with the source of each value; or, with --check, only whether it is valid. */
async function runConfig(flags: FlagValues<typeof configFlags>, io: Io): Promise<ExitCode> {
  const inspected = await inspectConfig(flags, io.env);
  if (!inspected.ok) {
    for (const problem of inspected.problems) io.stderr(`unghost: ${printable(problem)}\n`);
    return ExitCode.usage;
  }
  const config = inspected.value;
  if (flags.check === true) {
    const path = configPath(flags, io.env);
    io.stdout(config.file === undefined ? `No ${path}: defaults apply.\n` : `${path} is valid.\n`);
    return ExitCode.ok;
  }
  const values = effectiveValues(config);
  const { output } = nodeSettings(config.given);
  // YAML, not a table, so that it can be used as a configuration file.
  io.stdout(output === "json" ? await renderConfigJson(values) : await renderConfigYaml(values));
  return ExitCode.ok;
}

/** The whole valid configuration and its sources. */
interface Configuration {
  /** Undefined if there is no file, and none was requested. */
  readonly file: ConfigFile | undefined;
  readonly given: GivenSettings;
  /** By flag or environment. */
  readonly overrides: ReadonlyMap<string, Given>;
  readonly agent: AgentSettings;
}

/** Checks flags, environment and file for every error, not only the first. */
export async function inspectConfig(flags: NodeFlags & AgentFlags, env: Io["env"]): Promise<Checked<Configuration>> {
  const file = await readConfigFile(flags, env);
  const given = givenSettings(flags, env, file);
  const overrides = agentOverrides(flags, env);
  const checked = checkAgent(file, overrides);
  const problems = [...(file?.problems ?? []), ...(await problemsOf(given)), ...(checked.ok ? [] : checked.problems)];
  if (!checked.ok || problems.length > 0) return { ok: false, problems };
  return { ok: true, value: { file, given, overrides, agent: checked.value } };
}

/** Each setting separately, so that an invalid one does not hide the next. */
async function problemsOf(given: GivenSettings): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const key of Object.keys(NODE)) {
    try {
      const { only, skip } = nodeSettings((asked) => (asked === key ? given(asked) : undefined));
      await classIds([...only, ...skip]);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      problems.push(error.message);
    }
  }
  return problems;
}

/** One effective value, as it would be written in the file, and its source. */
interface EffectiveValue {
  readonly path: readonly string[];
  readonly value: unknown;
  /** A flag, an environment variable, a position in the file, or `default`. */
  readonly from: string;
}

/** Every key, set or not. */
export function effectiveValues({ file, given, overrides, agent }: Configuration): readonly EffectiveValue[] {
  /** The first of these paths with a configured value. */
  const sourceOf = (...paths: readonly (readonly string[])[]): string => {
    const set = paths.find((path) => (valueAt(agent, path) ?? undefined) !== undefined);
    if (set === undefined) return "default";
    return overrides.get(set[0] ?? "")?.from ?? file?.placeOf(["agent", ...set]) ?? "default";
  };
  const below = (group: Settings, parsed: Readonly<Record<string, unknown>>, ...above: readonly string[]) =>
    writtenValues(group, valuesOf(group, parsed)).map(({ key, value }) => {
      return { path: ["agent", ...above, key], value, from: sourceOf([...above, key]) };
    });
  const unheld = policyFrom({ ...agent, observeOnly: false }).classes;
  const { classes, maintenanceWindows } = policyFrom(agent);
  return [
    ...writtenValues(NODE, nodeSettings(given)).map(({ key, value }) => {
      return { path: [key], value, from: given(key as NodeKey)?.from ?? "default" };
    }),
    ...below(SCANNING, agent),
    ...[...classes].flatMap(([id, policy]) =>
      Object.entries(writtenClass(policy)).map(([key, value]) => {
        const isHeld = key === "mode" && unheld.get(id)?.mode !== value;
        const from = isHeld ? sourceOf(["observeOnly"]) : sourceOf(["classes", id, key], ["defaults", key]);
        return { path: ["agent", "classes", id, key], value, from };
      }),
    ),
    {
      path: ["agent", "maintenanceWindows"],
      value: maintenanceWindows.map(writtenWindow),
      from: sourceOf(["maintenanceWindows"]),
    },
    ...below(LIMITS, agent),
    ...below(FLEET, agent.fleet ?? {}, "fleet"),
    ...below(SERVICE, agent),
  ];
}

function writtenClass({ mode, minAgeMs, attempts, attemptsWithinMs, coolDownMs }: ClassPolicy) {
  const [minAge, within, coolDown] = [minAgeMs, attemptsWithinMs, coolDownMs].map(durationText);
  return { mode, minAge, attempts, within, coolDown };
}

function writtenWindow({ days, fromMinute, toMinute, timeZone }: MaintenanceWindow) {
  const [from, to] = [fromMinute, toMinute].map((minute) =>
    [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, "0")).join(":"),
  );
  return { ...(days.length > 0 && { days: days.map((day) => DAYS[day]) }), from, to, timeZone };
}

/** The effective configuration as a file, with the source of each value as comment. */
async function renderConfigYaml(values: readonly EffectiveValue[]): Promise<string> {
  const { Document, isCollection, isNode } = await import("yaml");
  const document = new Document({});
  for (const { path, value, from } of values) {
    document.setIn(path, document.createNode(value));
    const node = document.getIn(path, true);
    if (!isNode(node)) continue;
    node.comment = ` ${printable(from)}`;
    if (isCollection(node)) node.flow = true;
  }
  return document.toString({ lineWidth: 0 });
}

/** The same as JSON: each value with its source. */
async function renderConfigJson(values: readonly EffectiveValue[]): Promise<string> {
  const { Document } = await import("yaml");
  const document = new Document({});
  for (const { path, value, from } of values) document.setIn(path, document.createNode({ value, from }));
  return await formatDocument(document.toJS(), "json");
}
