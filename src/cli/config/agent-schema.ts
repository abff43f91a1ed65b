import * as v from "valibot";
import { classById, classes } from "../../classes/index.ts";
import { FLEET, LIMITS, SCANNING, SERVICE, schemasOf } from "./agent-settings.ts";
import { byName, duration, listOf, oneOf, section, timeOfDay, timeZone, wholeNumber } from "./fields.ts";

/** In the order of Date. */
export const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

const Mode = oneOf(["observe", "heal", "off"]);

const BUDGET = {
  minAge: v.nullish(duration("0s", "24h")),
  attempts: v.nullish(wholeNumber(1, 100)),
  within: v.nullish(duration("1m", "168h")),
  coolDown: v.nullish(duration("1s", "24h")),
};

/** `heal` is short for `{ mode: heal }`. */
const ClassEntry = v.pipe(
  v.unknown(),
  v.transform((input) => (typeof input === "object" ? input : { mode: input })),
  section({ mode: v.nullish(Mode), ...BUDGET }),
);

const Classes = v.pipe(
  byName(
    "failure class",
    classes.map(({ id }) => id),
    v.nullish(ClassEntry),
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    if (typeof dataset.value !== "object" || dataset.value === null) return;
    for (const [id, entry] of Object.entries(dataset.value)) {
      if (!isSetToHeal(entry) || hasSomethingToRun(id)) continue;
      const message = "unghost has no automatic treatment for it: set it to observe or off";
      addIssue({ message, path: [{ type: "object", origin: "value", input: {}, key: id, value: entry }] });
    }
  }),
);

function isSetToHeal(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && "mode" in entry && entry.mode === "heal";
}

/** What a snapshot cannot show is known by log lines alone, and those prove nothing that could be acted on. */
function hasSomethingToRun(id: string): boolean {
  const known = classById(id);
  if (known === undefined) return true;
  const { treatment, detect } = known;
  return treatment.mode === "automatic" || (treatment.mode === "attended" && detect !== undefined);
}

const Window = v.pipe(
  section({
    days: v.nullish(listOf(oneOf(DAYS))),
    from: timeOfDay("23:59"),
    to: timeOfDay("24:00"),
    timeZone: v.nullish(timeZone()),
  }),
  v.partialCheck(
    [["from"], ["to"]],
    ({ from, to }) => from !== to,
    "from and to are the same: without any window, acting is always allowed",
  ),
);

/**
 * The `agent` section of the configuration file. Durations are converted to milliseconds, times to minutes after
 * midnight.
 */
export const AgentSection = v.pipe(
  section({
    ...schemasOf(SCANNING),
    classes: v.nullish(Classes),
    // Healing needs consent by class name; all classes together can only be set to observe.
    defaults: v.nullish(section({ mode: v.nullish(oneOf(["observe"])), ...BUDGET })),
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
