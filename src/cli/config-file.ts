import { readFileSync } from "node:fs";
import { errorCode } from "../host/system-error.ts";
import type { ParsedConfig } from "./config/parse.ts";
import { SettingsError } from "./setting-values.ts";

const DEFAULT_PATH = "/etc/unghost/config.yaml";
/** Everything below this key is the agent's; the others are settings that every node command knows. */
export const AGENT_KEY = "agent";

export type ConfigFile = ParsedConfig["values"];

/** The path of the configuration file, whether or not one is there. */
export function configPath(asked: string | undefined): string {
  return asked ?? DEFAULT_PATH;
}

/** Reads the configuration file. The default one may be missing; one that was asked for may not. */
export async function readConfigFile(asked: string | undefined, knownKeys: readonly string[]): Promise<ConfigFile> {
  const parsed = await parsedConfigFile(asked, knownKeys);
  if (parsed === undefined) return new Map();
  const problems = [...parsed.problems, ...(await problemsOfAgent(parsed))];
  const [first, ...more] = problems;
  if (first === undefined) return parsed.values;
  const others = more.length === 0 ? "" : ` (and ${more.length} more: \`unghost config --check\` names them all)`;
  throw new SettingsError(first + others);
}

/** What stands in the file, right or wrong. Undefined: there is none, and none was asked for. */
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

/** An error in the agent's part fails every command: it should not show up only when the agent starts. */
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
