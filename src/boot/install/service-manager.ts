import { existsSync } from "node:fs";
import { failureOf, runChild } from "../../host/child.ts";
import { AGENT_UNIT } from "./agent-service.ts";
import { KEEP_UNIT } from "./keep-service.ts";

/** Commands of the service manager around a change of its files. */
export interface ManagerCommands {
  readonly before: readonly (readonly string[])[];
  readonly after: readonly (readonly string[])[];
}

const NOTHING: ManagerCommands = { before: [], after: [] };
const RELOAD = ["systemctl", "daemon-reload"];

/**
 * Nothing has to be enabled: drop-ins of the runtime's unit want ours. OpenRC reads its directories again on its own.
 */
export function installCommands(paths: readonly string[]): ManagerCommands {
  if (!paths.some(isSystemds)) return NOTHING;
  const has = (unit: string): boolean => paths.some((path) => path.endsWith(`/${unit}`));
  // A running agent is restarted with the new version.
  const restart = has(AGENT_UNIT) ? [["systemctl", "restart", AGENT_UNIT]] : [];
  // The keeper disrupts no pod, and pods created before the next boot need it, too.
  const keep = has(KEEP_UNIT) ? [["systemctl", "restart", KEEP_UNIT]] : [];
  return { before: [], after: [RELOAD, ...restart, ...keep] };
}

export function uninstallCommands(paths: readonly string[]): ManagerCommands {
  if (!paths.some(isSystemds)) return NOTHING;
  const units = paths.map((path) => path.slice(path.lastIndexOf("/") + 1)).filter((name) => name.endsWith(".service"));
  return { before: units.length === 0 ? [] : [["systemctl", "stop", ...units]], after: [RELOAD] };
}

function isSystemds(path: string): boolean {
  return path.startsWith("/etc/systemd/");
}

/** As documented by systemd (sd_booted). */
export function systemdRuns(): boolean {
  return existsSync("/run/systemd/system");
}

const COMMAND_MS = 60_000;

export type RunCommand = (command: readonly string[]) => Promise<string | undefined>;

/** Returns the error output, or undefined. */
export const runCommand: RunCommand = async (command) => {
  const result = await runChild(command, { timeoutMs: COMMAND_MS });
  const failure = failureOf(result);
  if (failure === undefined) return undefined;
  return result.stderr.trim() || `${command[0]} ${failure}`;
};
