import type { AgentPolicy } from "../../agent/policy/agent-policy.ts";
import { parsedConfigFile } from "../config-file.ts";
import type { Io } from "../io.ts";
import { type NodeFlags, SETTING_KEYS } from "../node-settings.ts";
import { type Raw, SettingsError } from "../setting-values.ts";
import { askedConfigFile, fromFlagOrEnvironment } from "../settings.ts";
import { AGENT_FLAG_KEYS, type AgentFlags, type AgentService } from "./agent-settings.ts";
import { checkAgentConfig } from "./check-agent.ts";
import { policyFrom, serviceFrom } from "./to-policy.ts";

export type PolicyRead =
  | { readonly ok: true; readonly policy: AgentPolicy; readonly service: AgentService }
  /** One sentence each. The previous policy stays active. */
  | { readonly ok: false; readonly problems: readonly string[] };

/**
 * Reads the agent's policy. Never throws: errors are values, because a running agent continues with its previous
 * policy.
 */
export async function readAgentPolicy(
  flags: AgentFlags & Pick<NodeFlags, "config">,
  env: Io["env"],
): Promise<PolicyRead> {
  try {
    const parsed = await parsedConfigFile(askedConfigFile(flags, env), SETTING_KEYS);
    const checked = checkAgentConfig(parsed, agentOverrides(flags, env));
    const problems = [...(parsed?.problems ?? []), ...(checked.ok ? [] : checked.problems)];
    if (!checked.ok || problems.length > 0) return { ok: false, problems };
    return { ok: true, policy: policyFrom(checked.settings), service: serviceFrom(checked.settings) };
  } catch (error) {
    if (error instanceof SettingsError) return { ok: false, problems: [error.message] };
    throw error;
  }
}

/** Values of flags and environment, which override the file's. */
export function agentOverrides(flags: AgentFlags, env: Io["env"]): ReadonlyMap<string, Raw> {
  return new Map(
    AGENT_FLAG_KEYS.flatMap((key) => {
      const raw = fromFlagOrEnvironment(key, flags, env);
      return raw === undefined ? [] : [[key, raw]];
    }),
  );
}
