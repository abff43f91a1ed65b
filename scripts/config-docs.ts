/** Writes the tables of settings into docs/configuration.md; with --check it only reports whether they are current. */
import { readFileSync, writeFileSync } from "node:fs";
import {
  CLASS,
  DEFAULTS,
  FLEET,
  kebab,
  LIMITS,
  NODE,
  SCANNING,
  SERVICE,
  type Settings,
  WINDOW,
} from "../src/cli/settings/table.ts";

const PAGE = "docs/configuration.md";

const TABLES: Readonly<Record<string, readonly string[]>> = {
  node: rowsOf(NODE),
  agent: rowsOf({ ...SCANNING, ...LIMITS }, "agent."),
  classes: [...rowsOf(CLASS, "agent.classes.<class>.", "by class"), ...rowsOf(DEFAULTS, "agent.defaults.")],
  windows: rowsOf(WINDOW, "agent.maintenanceWindows[]."),
  fleet: rowsOf(FLEET, "agent.fleet."),
  service: rowsOf(SERVICE, "agent."),
};

function rowsOf(group: Settings, above = "", otherwise = "none"): readonly string[] {
  return Object.entries(group).map(([key, { byDefault, defaultInWords, range, meaning, flag }]) => {
    // Every setting outside the agent's section has a flag.
    const named = above === "" || flag === undefined ? "" : `\`--${kebab(key)}\``;
    const words = [meaning ?? `${flag?.[0].replace(/ \(default .*\)$/, "")}.`, named]
      .filter((part) => part !== "")
      .join(" ");
    return `| \`${above}${key}\` | ${defaultInWords ?? inWords(byDefault, otherwise)} | ${range} | ${words} |`;
  });
}

function inWords(value: unknown, otherwise: string): string {
  const isNothing = value === undefined || (Array.isArray(value) && value.length === 0);
  return isNothing ? otherwise : `\`${JSON.stringify(value).replaceAll('"', "")}\``;
}

let page = readFileSync(PAGE, "utf8");
const before = page;
for (const [name, rows] of Object.entries(TABLES)) {
  const table = ["| key | default | range | meaning |", "|---|---|---|---|", ...rows];
  const place = new RegExp(`(<!-- settings: ${name}, by make docs -->\\n)(?:\\|.*\\n)*`);
  if (!place.test(page)) throw new Error(`${PAGE} has no place for the settings of "${name}"`);
  page = page.replace(place, (_whole, mark: string) => `${mark}${table.join("\n")}\n`);
}
if (!process.argv.includes("--check")) writeFileSync(PAGE, page);
else if (page !== before) {
  console.error(`${PAGE} is not current: run \`make docs\` and commit it`);
  process.exitCode = 1;
}
