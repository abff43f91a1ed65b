import type { ClassPolicy, MaintenanceWindow } from "../../agent/policy/agent-policy.ts";
import { AGENT_KEY } from "../config-file.ts";
import { durationText } from "../duration.ts";
import { SETTING_KEYS, writtenSettings } from "../node-settings.ts";
import { DAYS } from "./agent-schema.ts";
import { type AgentTable, FLEET, LIMITS, SCANNING, SERVICE } from "./agent-settings.ts";
import { valueAt } from "./check-agent.ts";
import type { Inspected } from "./inspect.ts";
import { policyFrom } from "./to-policy.ts";

/** One effective value, as it would be written in the file, and its source. */
export interface EffectiveValue {
  readonly path: readonly string[];
  readonly value: unknown;
  /** A flag, an environment variable, a position in the file, or `default`. */
  readonly from: string;
}

/** The effective configuration: every key, set or not. */
export function effectiveConfig(config: Inspected): readonly EffectiveValue[] {
  return [...nodeValues(config), ...agentValues(config)];
}

function nodeValues({ settings, raw }: Inspected): readonly EffectiveValue[] {
  const values = writtenSettings(settings);
  return SETTING_KEYS.map((key) => {
    const from = raw(key)?.from.replace(`: ${key}`, "") ?? "default";
    return { path: [key], value: values[key] ?? null, from };
  });
}

function agentValues(config: Inspected): readonly EffectiveValue[] {
  const { policy, service, agent } = config;
  const unheld = policyFrom({ ...agent, observeOnly: false }).classes;
  const effective = { policy, service, observeOnly: agent.observeOnly ?? false };
  const value = (path: readonly string[], one: unknown): EffectiveValue => ({
    path: [AGENT_KEY, ...path],
    value: one ?? null,
    from: sourceOf(config, path),
  });
  const valuesOf = (table: AgentTable, ...above: readonly string[]): readonly EffectiveValue[] =>
    Object.entries(table).map(([key, setting]) => value([...above, key], setting.effective(effective)));
  return [
    ...valuesOf(SCANNING),
    ...[...policy.classes].flatMap(([id, classPolicy]) =>
      classValues(id, classPolicy, config, unheld.get(id)?.mode !== classPolicy.mode),
    ),
    value(["maintenanceWindows"], policy.maintenanceWindows.map(windowAsWritten)),
    ...valuesOf(LIMITS),
    ...valuesOf(FLEET, "fleet"),
    ...valuesOf(SERVICE),
  ];
}

function classValues(id: string, policy: ClassPolicy, config: Inspected, isHeld: boolean): readonly EffectiveValue[] {
  const value = (key: string, effective: unknown): EffectiveValue => ({
    path: [AGENT_KEY, "classes", id, key],
    value: effective,
    from: sourceOf(config, ["classes", id, key], ["defaults", key]),
  });
  const mode = value("mode", policy.mode);
  return [
    isHeld ? { ...mode, from: sourceOf(config, ["observeOnly"]) } : mode,
    value("minAge", durationText(policy.minAgeMs)),
    value("attempts", policy.attempts),
    value("within", durationText(policy.attemptsWithinMs)),
    value("coolDown", durationText(policy.coolDownMs)),
  ];
}

/** The first of these paths with a configured value. */
function sourceOf({ overrides, agent, file }: Inspected, ...paths: readonly (readonly string[])[]): string {
  const set = paths.find((path) => (valueAt(agent, path) ?? undefined) !== undefined);
  if (set === undefined) return "default";
  return overrides.get(set[0] ?? "")?.from ?? file?.placeOf([AGENT_KEY, ...set]) ?? "default";
}

function windowAsWritten({
  days,
  fromMinute,
  toMinute,
  timeZone,
}: MaintenanceWindow): Readonly<Record<string, unknown>> {
  return {
    ...(days.length === 0 ? {} : { days: days.map((day) => DAYS[day]) }),
    from: timeAsWritten(fromMinute),
    to: timeAsWritten(toMinute),
    timeZone,
  };
}

function timeAsWritten(minute: number): string {
  return [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, "0")).join(":");
}
