import { buildCommand } from "@stricli/core";
import { printable } from "../../host/printable.ts";
import { formatDocument } from "../../report/format.ts";
import { type AgentFlags, agentFlags } from "../config/agent-settings.ts";
import { type EffectiveValue, effectiveConfig } from "../config/effective.ts";
import { inspectConfig } from "../config/inspect.ts";
import { configPath } from "../config-file.ts";
import { ExitCode } from "../exit-codes.ts";
import { onOff } from "../flag-kinds.ts";
import type { Io } from "../io.ts";
import { type NodeFlags, nodeFlagAliases, nodeFlags } from "../node-settings.ts";
import { askedConfigFile } from "../settings.ts";
import type { Context } from "./index.ts";

export const configCommand = buildCommand<ConfigFlags, [], Context>({
  docs: { brief: "Show the configuration that holds, and where each value comes from. Exit 0, or 64 when it is wrong" },
  parameters: {
    flags: {
      ...nodeFlags,
      output: { ...nodeFlags.output, brief: "yaml (the default: a configuration file again) or json" },
      ...agentFlags,
      check: onOff("Only validate the configuration and list every error"),
    },
    aliases: nodeFlagAliases,
  },
  func: async function (flags) {
    this.finish(await runConfig(flags, this.io));
  },
});

interface ConfigFlags extends NodeFlags, AgentFlags {
  readonly check?: boolean;
}

/** Shows the effective configuration with the source of each value; or, with --check, only whether it is valid. */
async function runConfig(flags: ConfigFlags, io: Io): Promise<ExitCode> {
  const inspected = await inspectConfig(flags, io.env);
  if (!inspected.ok) {
    for (const problem of inspected.problems) io.stderr(`unghost: ${printable(problem)}\n`);
    return ExitCode.usage;
  }
  const { config } = inspected;
  if (flags.check === true) {
    const path = configPath(askedConfigFile(flags, io.env));
    io.stdout(config.file === undefined ? `No ${path}: defaults apply.\n` : `${path} is valid.\n`);
    return ExitCode.ok;
  }
  const values = effectiveConfig(config);
  // YAML, not a table, so that it can be used as a configuration file.
  io.stdout(config.settings.output === "json" ? await renderConfigJson(values) : await renderConfigYaml(values));
  return ExitCode.ok;
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
