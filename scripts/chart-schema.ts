/**
 * Writes classes, agent settings and alerts into the chart's values.schema.json. With --check it only reports whether
 * the file is current.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { classes } from "../src/classes/index.ts";
import { CLASS, FLEET, LIMITS, SCANNING, SERVICE } from "../src/cli/settings/table.ts";

const SCHEMA = "deploy/helm/unghost/values.schema.json";
const RULES = "deploy/helm/unghost/files/unghost.rules.yaml";

type Properties = Record<string, { properties?: Record<string, unknown> }>;
interface Schema {
  $defs?: object;
  readonly properties: Properties;
}

const published = readFileSync(SCHEMA, "utf8");
const schema = JSON.parse(published) as Schema;

const DURATION = { type: ["string", "number"], pattern: "^([0-9]+(\\.[0-9]+)?(ms|s|m|h|d)?)+$" };
const COUNT = { type: "integer", minimum: 1 };
const ofClass = Object.entries<{ readonly unit?: "ms" }>(CLASS).map(([key, { unit }]) => [
  key,
  unit === "ms" ? DURATION : COUNT,
]);
schema.$defs = {
  class: {
    type: ["object", "string"],
    pattern: "^(observe|heal|off)$",
    additionalProperties: false,
    properties: { ...Object.fromEntries(ofClass), mode: { enum: ["observe", "heal", "off"] } },
  },
};
schema.properties["classes"] = onlyThese(
  classes.map(({ id }) => id),
  { $ref: "#/$defs/class" },
);

// The agent itself validates their values.
const settings = [SCANNING, LIMITS, SERVICE].flatMap((table) => Object.keys(table));
const agent = onlyThese([...settings, "classes", "defaults", "fleet", "maintenanceWindows"], {});
schema.properties["agent"] = {
  ...agent,
  properties: { ...agent.properties, fleet: onlyThese(Object.keys(FLEET), {}) },
};

const { groups } = parse(readFileSync(RULES, "utf8")) as { groups: { rules: { alert?: string }[] }[] };
const alerts = new Set(groups.flatMap(({ rules }) => rules.flatMap(({ alert }) => alert ?? [])));
const rule = schema.properties["prometheusRule"]?.properties;
if (rule !== undefined) rule["disabled"] = { type: "array", items: { enum: [...alerts] } };

const current = formatted(JSON.stringify(schema, undefined, 2));
if (!process.argv.includes("--check")) writeFileSync(SCHEMA, current);
else if (published !== current) {
  console.error(`${SCHEMA} is not current: run \`make docs\` and commit it`);
  process.exitCode = 1;
}

/** In the format of `make lint`; the rest of the file is written manually. */
function formatted(json: string): string {
  const { status, stdout, stderr } = spawnSync("biome", ["format", `--stdin-file-path=${SCHEMA}`], {
    input: json,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`biome format ${SCHEMA}: ${stderr}`);
  return stdout;
}

/** Not `propertyNames`, because helm reports a wrong position for it. */
function onlyThese(names: readonly string[], schemaOfEach: object) {
  const properties = Object.fromEntries(names.toSorted().map((name) => [name, schemaOfEach]));
  return { type: "object", additionalProperties: false, properties };
}
