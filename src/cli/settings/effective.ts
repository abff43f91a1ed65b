import type { ClassPolicy, MaintenanceWindow } from "../../agent/policy/agent-policy.ts";
import type { ConfigFile } from "./file.ts";
import { durationText } from "./kinds.ts";
import { type AgentSettings, policyFrom, valueAt } from "./policy.ts";
import { type Given, type GivenSettings, type NodeKey, nodeSettings } from "./read.ts";
import { DAYS, FLEET, LIMITS, NODE, SCANNING, SERVICE, type Settings, valuesOf, writtenValues } from "./table.ts";

/** The whole valid configuration and its sources. */
export interface Configuration {
  /** Undefined if there is no file, and none was requested. */
  readonly file: ConfigFile | undefined;
  readonly given: GivenSettings;
  /** By flag or environment. */
  readonly overrides: ReadonlyMap<string, Given>;
  readonly agent: AgentSettings;
}

/** One effective value, as it would be written in the file, and its source. */
export interface EffectiveValue {
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
