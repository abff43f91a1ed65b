import { printable } from "../../host/text.ts";
import { formatDocument } from "../../report/output.ts";
import { ExitCode, type Io } from "../io.ts";
import { type Configuration, type EffectiveValue, effectiveValues } from "../settings/effective.ts";
import { onOff, SettingsError } from "../settings/kinds.ts";
import { agentOverrides, checkAgent } from "../settings/policy.ts";
import { configPath, type GivenSettings, givenSettings, nodeSettings, readConfigFile } from "../settings/read.ts";
import {
  type AgentFlags,
  agentFlags,
  type FlagValues,
  NODE,
  type NodeFlags,
  nodeFlagAliases,
  nodeFlags,
} from "../settings/table.ts";
import { checkClassNames } from "../targets.ts";
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
  const { config } = inspected;
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

type Inspection =
  | { readonly ok: true; readonly config: Configuration }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Checks flags, environment and file for every error, not only the first. */
export async function inspectConfig(flags: NodeFlags & AgentFlags, env: Io["env"]): Promise<Inspection> {
  const file = await readConfigFile(flags, env);
  const given = givenSettings(flags, env, file);
  const overrides = agentOverrides(flags, env);
  const checked = checkAgent(file, overrides);
  const problems = [...(file?.problems ?? []), ...problemsOf(given), ...(checked.ok ? [] : checked.problems)];
  if (!checked.ok || problems.length > 0) return { ok: false, problems };
  return { ok: true, config: { file, given, overrides, agent: checked.agent } };
}

/** Each setting separately, so that an invalid one does not hide the next. */
function problemsOf(given: GivenSettings): readonly string[] {
  return Object.keys(NODE).flatMap((key) => {
    try {
      const { only, skip } = nodeSettings((asked) => (asked === key ? given(asked) : undefined));
      checkClassNames([...only, ...skip]);
      return [];
    } catch (error) {
      if (error instanceof SettingsError) return [error.message];
      throw error;
    }
  });
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
