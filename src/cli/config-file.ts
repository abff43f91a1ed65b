import { readFileSync } from "node:fs";
import { errorCode } from "../host/system-error.ts";
import type { ParsedConfig } from "./config/parse.ts";
import { SettingsError } from "./setting-values.ts";

const DEFAULT_PATH = "/etc/unghost/config.yaml";
/** The section of the agent; all other keys are settings of every node command. */
export const AGENT_KEY = "agent";

export type ConfigFile = ParsedConfig["values"];

/** The path of the configuration file, existing or not. */
export function configPath(asked: string | undefined): string {
  return asked ?? DEFAULT_PATH;
}

/** Reads the configuration file. The default one may be missing; a requested one may not. */
export async function readConfigFile(asked: string | undefined, knownKeys: readonly string[]): Promise<ConfigFile> {
  const parsed = await parsedConfigFile(asked, knownKeys);
  if (parsed === undefined) return new Map();
  const problems = [...parsed.problems, ...(await problemsOfAgent(parsed))];
  const [first, ...more] = problems;
  if (first === undefined) return parsed.values;
  const others = more.length === 0 ? "" : ` (and ${more.length} more: \`unghost config --check\` names them all)`;
  throw new SettingsError(first + others);
}

/** The content of the file, valid or not. Undefined if there is none, and none was requested. */
export async function parsedConfigFile(
  asked: string | undefined,
  knownKeys: readonly string[],
): Promise<ParsedConfig | undefined> {
  const path = configPath(asked);
  const source = readSource(path, asked !== undefined);
  if (source === undefined) return undefined;
  const { parseConfig } = await import("./config/parse.ts");
  return await parseConfig(path, source, [...knownKeys, AGENT_KEY]);
}

/** An error in the agent's section fails every command, so that it is found before the agent starts. */
async function problemsOfAgent(parsed: ParsedConfig): Promise<readonly string[]> {
  if (!parsed.values.has(AGENT_KEY)) return [];
  const { checkAgentConfig } = await import("./config/check-agent.ts");
  const checked = checkAgentConfig(parsed, new Map());
  return checked.ok ? [] : checked.problems;
}

function readSource(path: string, required: boolean): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = errorCode(error);
    if (!required && (code === "ENOENT" || code === "ENOTDIR")) return undefined;
    throw new SettingsError(`cannot read the configuration file ${path} (${code ?? String(error)})`);
  }
}
