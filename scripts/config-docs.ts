/** Writes the tables of settings into docs/configuration.md; with --check it only reports whether they are current. */
import { readFileSync, writeFileSync } from "node:fs";
import { type AgentTable, FLEET, LIMITS, SCANNING, SERVICE } from "../src/cli/config/agent-settings.ts";
import { policyFrom, serviceFrom } from "../src/cli/config/to-policy.ts";
import { NODE_SETTINGS, readSettings, SETTING_KEYS, writtenSettings } from "../src/cli/node-settings.ts";

const PAGE = "docs/configuration.md";

interface Row {
  readonly key: string;
  readonly byDefault: string;
  readonly range: string;
  readonly meaning: string;
}

const written = writtenSettings(readSettings(() => undefined));
const agent = { policy: policyFrom({}), service: serviceFrom({}), observeOnly: false };

const TABLES: Readonly<Record<string, readonly Row[]>> = {
  node: SETTING_KEYS.map((key) => {
    const setting = NODE_SETTINGS[key];
    const byDefault = "byDefault" in setting ? setting.byDefault : inWords(written[key]);
    return { key, byDefault, range: setting.range, meaning: setting.meaning };
  }),
  agent: agentRows({ ...SCANNING, ...LIMITS }, "agent"),
  fleet: agentRows(FLEET, "agent.fleet"),
  service: agentRows(SERVICE, "agent"),
};

function agentRows(table: AgentTable, above: string): readonly Row[] {
  return Object.entries(table).map(([key, { effective, range, meaning, flag }]) => {
    const name = `\`--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}\``;
    const words = [meaning, ...(flag === undefined ? [] : [name])].filter((part) => part !== "");
    return { key: `${above}.${key}`, byDefault: inWords(effective(agent)), range, meaning: words.join(" ") };
  });
}

function inWords(value: unknown): string {
  const isNothing = value === undefined || (Array.isArray(value) && value.length === 0);
  return isNothing ? "none" : `\`${JSON.stringify(value).replaceAll('"', "")}\``;
}

let page = readFileSync(PAGE, "utf8");
const before = page;
for (const [name, rows] of Object.entries(TABLES)) {
  const table = [
    "| key | default | range | meaning |",
    "|---|---|---|---|",
    ...rows.map(({ key, byDefault, range, meaning }) => `| \`${key}\` | ${byDefault} | ${range} | ${meaning} |`),
  ];
  const place = new RegExp(`(<!-- settings: ${name}, by make docs -->\\n)(?:\\|.*\\n)*`);
  if (!place.test(page)) throw new Error(`${PAGE} has no place for the settings of "${name}"`);
  page = page.replace(place, (_whole, mark: string) => `${mark}${table.join("\n")}\n`);
}
if (!process.argv.includes("--check")) writeFileSync(PAGE, page);
else if (page !== before) {
  console.error(`${PAGE} is not current: run \`make docs\` and commit it`);
  process.exitCode = 1;
}
