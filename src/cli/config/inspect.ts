import type { AgentPolicy } from "../../agent/policy/agent-policy.ts";
import { parsedConfigFile } from "../config-file.ts";
import type { Io } from "../io.ts";
import { type NodeFlags, type NodeSettings, SETTING_KEYS } from "../node-settings.ts";
import { type Raw, SettingsError } from "../setting-values.ts";
import { askedConfigFile, type RawSettings, rawSettings, settingsFrom } from "../settings.ts";
import { checkClassNames } from "../targets.ts";
import type { AgentSettings } from "./agent-schema.ts";
import type { AgentFlags, AgentService } from "./agent-settings.ts";
import { checkAgentConfig } from "./check-agent.ts";
import type { ParsedConfig } from "./parse.ts";
import { agentOverrides } from "./read-agent-policy.ts";
import { policyFrom, serviceFrom } from "./to-policy.ts";

/** The whole configuration and its sources. */
export interface Inspected {
  /** Undefined if there is no file, and none was requested. */
  readonly file: ParsedConfig | undefined;
  readonly raw: RawSettings;
  readonly settings: NodeSettings;
  readonly overrides: ReadonlyMap<string, Raw>;
  readonly agent: AgentSettings;
  readonly policy: AgentPolicy;
  readonly service: AgentService;
}

export type Inspection =
  | { readonly ok: true; readonly config: Inspected }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Checks flags, environment and file for every error, not only the first. */
export async function inspectConfig(flags: NodeFlags & AgentFlags, env: Io["env"]): Promise<Inspection> {
  let file: ParsedConfig | undefined;
  try {
    file = await parsedConfigFile(askedConfigFile(flags, env), SETTING_KEYS);
  } catch (error) {
    return { ok: false, problems: [sentenceOf(error)] };
  }
  const raw = rawSettings(flags, env, file?.values ?? new Map());
  const overrides = agentOverrides(flags, env);
  const checked = checkAgentConfig(file, overrides);
  const problems = [...(file?.problems ?? []), ...settingsProblems(raw), ...(checked.ok ? [] : checked.problems)];
  if (!checked.ok || problems.length > 0) return { ok: false, problems };
  const agent = checked.settings;
  const settings = settingsFrom(raw);
  return {
    ok: true,
    config: { file, raw, settings, overrides, agent, policy: policyFrom(agent), service: serviceFrom(agent) },
  };
}

/** Each setting separately, so that an invalid one does not hide the next. */
function settingsProblems(raw: RawSettings): readonly string[] {
  return SETTING_KEYS.flatMap((key) => {
    try {
      const { only, skip } = settingsFrom((asked) => (asked === key ? raw(asked) : undefined));
      checkClassNames([...only, ...skip]);
      return [];
    } catch (error) {
      return [sentenceOf(error)];
    }
  });
}

function sentenceOf(error: unknown): string {
  if (error instanceof SettingsError) return error.message;
  throw error;
}
