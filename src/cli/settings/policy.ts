import * as v from "valibot";
import type { AgentPolicy, ClassPolicy } from "../../agent/policy/agent-policy.ts";
import type { FailureClass } from "../../classes/failure-class.ts";
import { classById, classes, classNamed } from "../../classes/index.ts";
import { didYouMean } from "../suggest.ts";
import type { ConfigFile } from "./file.ts";
import { SettingsError } from "./kinds.ts";
import { type Env, type Given, givenOutside, problemAt, readConfigFile } from "./read.ts";
import {
  type AgentFlags,
  agentFlags,
  CLASS,
  DAYS,
  DEFAULTS,
  FLEET,
  LIMITS,
  type NodeFlags,
  SCANNING,
  SERVICE,
  type Settings,
  valuesOf,
  WINDOW,
} from "./table.ts";

const KEYS_AND_VALUES = v.custom<object>(isKeysAndValues, "expected keys and values below it");

/** `heal` is short for `{ mode: heal }`. */
const ClassEntry = v.pipe(
  v.unknown(),
  v.transform((input) => (typeof input === "object" ? input : { mode: input })),
  section(schemasOf(CLASS)),
);

const CLASS_IDS = classes.map(({ id }) => id);

/** A class may be named by its code; an unknown name is reported as it was given. */
function idOf(name: string): string {
  return classNamed(name)?.id ?? name;
}

const Classes = v.pipe(
  KEYS_AND_VALUES,
  v.transform((entries) => Object.fromEntries(Object.entries(entries).map(([name, entry]) => [idOf(name), entry]))),
  v.record(v.string(), v.nullish(ClassEntry)),
  checkEntries((id, entry) => {
    if (!CLASS_IDS.includes(id)) return `unknown failure class${didYouMean(id, CLASS_IDS)}`;
    const isSetToHeal = isKeysAndValues(entry) && "mode" in entry && entry.mode === "heal";
    if (!isSetToHeal || hasSomethingToRun(id)) return undefined;
    return "unghost has no automatic treatment for it: set it to observe or off";
  }),
);

/** What a snapshot cannot show is known by log lines alone, and those prove nothing that could be acted on. */
function hasSomethingToRun(id: string): boolean {
  const { treatment, detect } = classById(id) ?? {};
  return treatment?.mode === "automatic" || (treatment?.mode === "attended" && detect !== undefined);
}

const Window = v.pipe(
  section({ ...schemasOf(WINDOW), from: WINDOW.from.schema, to: WINDOW.to.schema }),
  v.partialCheck(
    [["from"], ["to"]],
    ({ from, to }) => from !== to,
    "from and to are the same: without any window, acting is always allowed",
  ),
  v.transform(({ days, from, to, timeZone }) => ({
    days: (days ?? []).map((day) => DAYS.indexOf(day)),
    fromMinute: from,
    toMinute: to,
    timeZone: timeZone ?? WINDOW.timeZone.byDefault,
  })),
);

/** The `agent` section of the configuration file. */
export const AgentSection = v.pipe(
  section({
    ...schemasOf(SCANNING),
    classes: v.nullish(Classes),
    defaults: v.nullish(section(schemasOf(DEFAULTS))),
    maintenanceWindows: v.nullish(v.array(Window, "expected a list of windows, each with from and to")),
    ...schemasOf(LIMITS),
    fleet: v.nullish(section(schemasOf(FLEET))),
    ...schemasOf(SERVICE),
  }),
  v.partialCheck(
    [["tlsCert"], ["tlsKey"]],
    ({ tlsCert, tlsKey }) => Boolean(tlsCert) === Boolean(tlsKey),
    "tlsCert and tlsKey go together: give both, or none",
  ),
);

export type AgentSettings = v.InferOutput<typeof AgentSection>;

function schemasOf<Group extends Settings>(group: Group) {
  const entries = Object.entries(group).map(([key, { schema }]) => [key, v.nullish(schema)]);
  return Object.fromEntries(entries) as {
    readonly [Key in keyof Group]: v.NullishSchema<Group[Key]["schema"], undefined>;
  };
}

/** An object of known keys. */
function section<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.pipe(
    KEYS_AND_VALUES,
    // If it is an object, the only possible error of the object itself is a missing key.
    v.looseObject(entries, "missing"),
    checkEntries((key) => {
      if (known.includes(key)) return undefined;
      return `unknown key${didYouMean(key, known) || `; known are ${known.join(", ")}`}`;
    }),
  );
}

function isKeysAndValues(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports every wrong entry: valibot's own strict object stops at the first. */
function checkEntries<Input>(complaintAbout: (key: string, value: unknown) => string | undefined) {
  return v.rawCheck<Input>(({ dataset, addIssue }) => {
    const input: unknown = dataset.value;
    if (!isKeysAndValues(input)) return;
    for (const [key, value] of Object.entries(input)) {
      const message = complaintAbout(key, value);
      if (message === undefined) continue;
      addIssue({ message, path: [{ type: "object", origin: "key", input: { ...input }, key, value }] });
    }
  });
}

export type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  /** One sentence each. */
  | { readonly ok: false; readonly problems: readonly string[] };

/** Line 9 before line 10. */
const IN_FILE_ORDER = new Intl.Collator("en", { numeric: true });

/** The agent's section of the file, with flags and environment overriding its values; or all its errors. */
export function checkAgent(
  file: ConfigFile | undefined,
  overrides: ReadonlyMap<string, Given>,
): Checked<AgentSettings> {
  const inFile = file?.values.get("agent") ?? {};
  const overriding = Object.fromEntries([...overrides].map(([key, { value }]) => [key, value]));
  const merged: unknown = isKeysAndValues(inFile) ? { ...inFile, ...overriding } : inFile;
  const checked = v.safeParse(AgentSection, merged);
  if (checked.success) return { ok: true, value: checked.output };
  const problems = checked.issues.map((issue) => {
    const path = ["agent", ...(issue.path ?? []).map(({ key }) => String(key))];
    const dotted = path.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${key}`)).join("");
    // Without a file, an error of several values is about flags and variables.
    const place = file === undefined ? dotted.slice(1) : `${file.placeOf(path)}: ${dotted.slice(1)}`;
    return problemAt(overrides.get(path[1] ?? "")?.from ?? place, issue, valueAt(merged, path.slice(1)));
  });
  return { ok: false, problems: problems.toSorted(IN_FILE_ORDER.compare) };
}

/** The value at a path of keys; a scalar applies to everything below it. */
export function valueAt(inside: unknown, path: readonly string[]): unknown {
  const [key, ...rest] = path;
  if (key === undefined || typeof inside !== "object" || inside === null) return inside;
  return valueAt(Object.entries(inside).find(([name]) => name === key)?.[1], rest);
}

/** Values of flags and environment, which override the file's. */
export function agentOverrides(flags: AgentFlags, env: Env): ReadonlyMap<string, Given> {
  return new Map(
    Object.keys(agentFlags).flatMap((key) => {
      const given = givenOutside<string>(key, flags, env);
      return given === undefined ? [] : [[key, given]];
    }),
  );
}

interface AgentConfiguration {
  readonly policy: AgentPolicy;
  /** Listen address and output files. */
  readonly service: ReturnType<typeof serviceFrom>;
}

/** Never throws: errors are values, because a running agent continues with its previous policy. */
export async function readAgentPolicy(
  flags: AgentFlags & Pick<NodeFlags, "config">,
  env: Env,
): Promise<Checked<AgentConfiguration>> {
  try {
    const file = await readConfigFile(flags, env);
    const checked = checkAgent(file, agentOverrides(flags, env));
    const problems = [...(file?.problems ?? []), ...(checked.ok ? [] : checked.problems)];
    if (!checked.ok || problems.length > 0) return { ok: false, problems };
    return { ok: true, value: { policy: policyFrom(checked.value), service: serviceFrom(checked.value) } };
  } catch (error) {
    if (error instanceof SettingsError) return { ok: false, problems: [error.message] };
    throw error;
  }
}

function serviceFrom(agent: AgentSettings) {
  const { tlsCert, tlsKey, ...service } = valuesOf(SERVICE, agent);
  return { ...service, tls: tlsCert && tlsKey ? { certFile: tlsCert, keyFile: tlsKey } : undefined };
}

/** The configured values, on top of the defaults. */
export function policyFrom(agent: AgentSettings): AgentPolicy {
  const { ignoreNamespaces, ...limits } = valuesOf(LIMITS, agent);
  const { breakerAtLeast, ...fleet } = valuesOf(FLEET, agent.fleet ?? {});
  return {
    classes: new Map(classes.map((known) => [known.id, classPolicy(known, agent)])),
    scanEveryMs: valuesOf(SCANNING, agent).scanEveryMs,
    maintenanceWindows: agent.maintenanceWindows ?? [],
    ignoredNamespaces: ignoreNamespaces,
    ...limits,
    fleet: { ...fleet, breakerLeast: breakerAtLeast },
  };
}

/** The class's own setting, then the setting for all classes, then the default. */
function classPolicy(known: FailureClass, { classes: named, defaults, observeOnly }: AgentSettings): ClassPolicy {
  const own = named?.[known.id];
  const byDefault = defaultClassPolicy(known);
  const unnamed = byDefault.mode === "heal" ? (defaults?.mode ?? byDefault.mode) : byDefault.mode;
  const mode = own?.mode ?? unnamed;
  return {
    mode: observeOnly === true && mode === "heal" ? "observe" : mode,
    minAgeMs: own?.minAge ?? defaults?.minAge ?? byDefault.minAgeMs,
    attempts: own?.attempts ?? defaults?.attempts ?? byDefault.attempts,
    attemptsWithinMs: own?.within ?? defaults?.within ?? byDefault.attemptsWithinMs,
    coolDownMs: own?.coolDown ?? defaults?.coolDown ?? byDefault.coolDownMs,
  };
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Without a configured value, automatic classes are healed and the rest is observed. */
function defaultClassPolicy({ category, treatment }: FailureClass): ClassPolicy {
  // Healed only with consent (`agent.classes.<class>: heal`), so it is not retried often.
  if (treatment.mode !== "automatic") {
    const coolDownMs = 30 * MINUTE_MS;
    return { mode: "observe", minAgeMs: 10 * MINUTE_MS, attempts: 2, attemptsWithinMs: 24 * HOUR_MS, coolDownMs };
  }
  // No pod waits for a leak. A busy runtime leaves such files for moments all the time.
  if (category === "leak") {
    const coolDownMs = 10 * MINUTE_MS;
    return { mode: "heal", minAgeMs: 5 * MINUTE_MS, attempts: 3, attemptsWithinMs: 6 * HOUR_MS, coolDownMs };
  }
  // A pod waits: every second counts, and the diagnosis has already waited for a recovering kubelet.
  return { mode: "heal", minAgeMs: 0, attempts: 5, attemptsWithinMs: HOUR_MS, coolDownMs: 30 * SECOND_MS };
}
