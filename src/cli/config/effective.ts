import type { ClassPolicy, MaintenanceWindow } from "../../agent/policy/agent-policy.ts";
import { AGENT_KEY } from "../config-file.ts";
import { durationText } from "../duration.ts";
import { type NodeSettings, SETTING_KEYS, type SettingKey } from "../settings.ts";
import { DAYS } from "./agent-schema.ts";
import type { Inspected } from "./inspect.ts";
import { policyFrom } from "./to-policy.ts";
import { valueAt } from "./value-at.ts";

/** One value that holds, as it would be written in the file, and who said so. */
export interface EffectiveValue {
  readonly path: readonly string[];
  readonly value: unknown;
  /** A flag, an environment variable, a place in the file, or `default`. */
  readonly from: string;
}

/** The configuration as it holds: every key, whether or not anybody has set it. */
export function effectiveConfig(config: Inspected): readonly EffectiveValue[] {
  return [...nodeValues(config), ...agentValues(config)];
}

function nodeValues({ settings, raw }: Inspected): readonly EffectiveValue[] {
  const values = asWritten(settings);
  return SETTING_KEYS.map((key) => {
    const from = raw(key)?.from.replace(`: ${key}`, "") ?? "default";
    return { path: [key], value: values[key] ?? null, from };
  });
}

function asWritten(settings: NodeSettings): Readonly<Record<SettingKey, unknown>> {
  const { timeoutMs, minAgeMs, inflightGraceMs, abandonedGraceMs: _, volumeAttachmentAgeMs, ...rest } = settings;
  return {
    ...rest,
    timeout: durationText(timeoutMs),
    minAge: durationText(minAgeMs),
    inflightGrace: durationText(inflightGraceMs),
    volumeAttachmentAge: durationText(volumeAttachmentAgeMs),
  };
}

function agentValues(config: Inspected): readonly EffectiveValue[] {
  const { policy, service, agent } = config;
  const { fleet } = policy;
  const unheld = policyFrom({ ...agent, observeOnly: false }).classes;
  const value = (path: readonly string[], effective: unknown): EffectiveValue => ({
    path: [AGENT_KEY, ...path],
    value: effective ?? null,
    from: whoSaid(config, path),
  });
  return [
    value(["scanEvery"], durationText(policy.scanEveryMs)),
    value(["observeOnly"], agent.observeOnly ?? false),
    ...[...policy.classes].flatMap(([id, classPolicy]) =>
      classValues(id, classPolicy, config, unheld.get(id)?.mode !== classPolicy.mode),
    ),
    value(["maintenanceWindows"], policy.maintenanceWindows.map(windowAsWritten)),
    value(["ignoreNamespaces"], policy.ignoredNamespaces),
    value(["recreatePods"], policy.recreatePods),
    value(["cap"], policy.cap),
    value(["fleet", "slots"], fleet.slots),
    value(["fleet", "namespace"], fleet.namespace),
    value(["fleet", "breakerShare"], fleet.breakerShare),
    value(["fleet", "breakerAtLeast"], fleet.breakerLeast),
    value(["listen"], service.listen),
    value(["tlsCert"], service.tls?.certFile),
    value(["tlsKey"], service.tls?.keyFile),
    value(["tokenFile"], service.tokenFile),
    value(["textfile"], service.textfile),
    value(["logLevel"], service.logLevel),
  ];
}

function classValues(id: string, policy: ClassPolicy, config: Inspected, isHeld: boolean): readonly EffectiveValue[] {
  const value = (key: string, effective: unknown): EffectiveValue => ({
    path: [AGENT_KEY, "classes", id, key],
    value: effective,
    from: whoSaid(config, ["classes", id, key], ["defaults", key]),
  });
  const mode = value("mode", policy.mode);
  return [
    isHeld ? { ...mode, from: whoSaid(config, ["observeOnly"]) } : mode,
    value("minAge", durationText(policy.minAgeMs)),
    value("attempts", policy.attempts),
    value("within", durationText(policy.attemptsWithinMs)),
    value("coolDown", durationText(policy.coolDownMs)),
  ];
}

/** The first of these paths that anybody has set a value at. */
function whoSaid({ overrides, agent, file }: Inspected, ...paths: readonly (readonly string[])[]): string {
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
