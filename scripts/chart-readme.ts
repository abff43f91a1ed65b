/**
 * Writes the table of values in the chart's README from values.yaml and its comments. With --check it only reports
 * whether the file is current.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { isMap, isPair, isScalar, parseDocument, type YAMLMap } from "yaml";

const CHART = "deploy/helm/unghost";
const README = `${CHART}/README.md`;
const START = "<!-- values -->";

interface Row {
  readonly key: string;
  readonly byDefault: string;
  readonly meaning: string;
}

function rowsOf(map: YAMLMap, above: readonly string[]): readonly Row[] {
  return map.items.flatMap((pair, index) => {
    if (!isPair(pair) || !isScalar(pair.key)) return [];
    const path = [...above, String(pair.key.value)];
    // The comment above the first key belongs to the map.
    const comment = pair.key.commentBefore ?? (index === 0 ? map.commentBefore : undefined) ?? "";
    const { value } = pair;
    const isGroup = isMap(value) && value.items.length > 0 && above.length === 0 && !WHOLE.has(path[0] ?? "");
    const own = { key: path.join("."), byDefault: isGroup ? "" : JSON.stringify(toJs(value)), meaning: comment };
    if (!isGroup) return [own];
    const below = rowsOf(value, path);
    return comment === "" ? below : [own, ...below];
  });
}

/** Values that are handed on as they are. */
const WHOLE = new Set([
  "resources",
  "startupProbe",
  "livenessProbe",
  "readinessProbe",
  "updateStrategy",
  "nodeSelector",
]);

function toJs(value: unknown): unknown {
  return isMap(value) || isScalar(value) ? value.toJSON() : JSON.parse(JSON.stringify(value ?? null));
}

function inOneLine(comment: string): string {
  const lines = comment.split("\n").map((line) => line.trim());
  // Examples in YAML stay in values.yaml.
  const example = lines.findIndex((line) => line.startsWith("- name:"));
  const text = (example < 0 ? lines : lines.slice(0, example)).join(" ").trim();
  return text.replace(/:$/, ": see values.yaml.").replaceAll("|", "\\|");
}

const document = parseDocument(readFileSync(`${CHART}/values.yaml`, "utf8"));
if (!isMap(document.contents)) throw new Error(`${CHART}/values.yaml is not a map`);
const table = rowsOf(document.contents, []).map(
  ({ key, byDefault, meaning }) =>
    `| \`${key}\` | ${byDefault === "" ? "" : `\`${byDefault}\``} | ${inOneLine(meaning)} |`,
);
const published = readFileSync(README, "utf8");
const [above = ""] = published.split(START);
const text = `${above}${START}\n\n| value | default | |\n|---|---|---|\n${table.join("\n")}\n`;

if (!process.argv.includes("--check")) writeFileSync(README, text);
else if (published !== text) {
  console.error(`${README} is not current: run \`make docs\` and commit it`);
  process.exitCode = 1;
}
