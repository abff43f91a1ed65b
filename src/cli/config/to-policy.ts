import type { AgentPolicy, ClassMode, ClassPolicy, MaintenanceWindow } from "../../agent/policy/agent-policy.ts";
import { defaultAgentPolicy } from "../../agent/policy/default-policy.ts";
import { type AgentSettings, DAYS } from "./agent-schema.ts";
import type { AgentService } from "./agent-settings.ts";

export function serviceFrom({ listen, tlsCert, tlsKey, tokenFile, textfile, logLevel }: AgentSettings): AgentService {
  return {
    listen: listen ?? "127.0.0.1:20258",
    ...(tlsCert && tlsKey ? { tls: { certFile: tlsCert, keyFile: tlsKey } } : {}),
    ...(tokenFile ? { tokenFile } : {}),
    ...(textfile ? { textfile } : {}),
    logLevel: logLevel ?? "info",
  };
}

/** The configured values, on top of the defaults. */
export function policyFrom(settings: AgentSettings): AgentPolicy {
  const defaults = defaultAgentPolicy();
  const { fleet } = settings;
  return {
    classes: new Map([...defaults.classes].map(([id, known]) => [id, classPolicy(id, known, settings)])),
    scanEveryMs: settings.scanEvery ?? defaults.scanEveryMs,
    maintenanceWindows: settings.maintenanceWindows?.map(windowFrom) ?? defaults.maintenanceWindows,
    ignoredNamespaces: settings.ignoreNamespaces ?? defaults.ignoredNamespaces,
    recreatePods: settings.recreatePods ?? defaults.recreatePods,
    keepDurable: settings.keepDurable ?? defaults.keepDurable,
    quarantineRetentionMs: settings.quarantineRetention ?? defaults.quarantineRetentionMs,
    cap: settings.cap ?? defaults.cap,
    fleet: {
      slots: fleet?.slots ?? defaults.fleet.slots,
      namespace: fleet?.namespace ?? defaults.fleet.namespace,
      breakerShare: fleet?.breakerShare ?? defaults.fleet.breakerShare,
      breakerLeast: fleet?.breakerAtLeast ?? defaults.fleet.breakerLeast,
    },
  };
}

/** The class's own setting, then the setting for all classes, then the default. */
function classPolicy(id: string, known: ClassPolicy, { classes, defaults, observeOnly }: AgentSettings): ClassPolicy {
  const own = classes?.[id];
  const unnamed = known.mode === "heal" ? (defaults?.mode ?? known.mode) : known.mode;
  const mode: ClassMode = own?.mode ?? unnamed;
  return {
    mode: observeOnly === true && mode === "heal" ? "observe" : mode,
    minAgeMs: own?.minAge ?? defaults?.minAge ?? known.minAgeMs,
    attempts: own?.attempts ?? defaults?.attempts ?? known.attempts,
    attemptsWithinMs: own?.within ?? defaults?.within ?? known.attemptsWithinMs,
    coolDownMs: own?.coolDown ?? defaults?.coolDown ?? known.coolDownMs,
  };
}

type WindowSettings = NonNullable<AgentSettings["maintenanceWindows"]>[number];

function windowFrom({ days, from, to, timeZone }: WindowSettings): MaintenanceWindow {
  return {
    days: (days ?? []).map((day) => DAYS.indexOf(day)),
    fromMinute: from,
    toMinute: to,
    timeZone: timeZone ?? "UTC",
  };
}
