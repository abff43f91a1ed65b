import { mkdirSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SettingsError } from "../../src/cli/settings/kinds.ts";
import { readConfigFile, resolveSettings } from "../../src/cli/settings/read.ts";
import { tempDir } from "../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;

beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function file(content: string): string {
  const path = dir.join("config.yaml");
  writeFileSync(path, content);
  return path;
}

test("returns every value with its line", async () => {
  const path = file("# settings\ntimeout: 3s\n\n'only':\n  - one\n  - two\nnoKube: true\n");

  const config = await readConfigFile({ config: path }, {});

  expect(config?.problems).toEqual([]);
  expect([...(config?.values ?? [])].map(([key, value]) => [key, value, config?.placeOf([key])])).toEqual([
    ["timeout", "3s", `${path}:2:1`],
    ["only", ["one", "two"], `${path}:4:1`],
    ["noKube", true, `${path}:7:1`],
  ]);
});

test.each([
  ["an empty file", ""],
  ["comments alone", "# nothing yet\n"],
  ["an empty document", "---\n"],
])("%s has no values", async (_, content) => {
  expect(await readConfigFile({ config: file(content) }, {})).toMatchObject({ values: new Map(), problems: [] });
});

/** Expanded, this would not fit into any memory. */
function laughs(levels: number): string {
  const lines = Array.from({ length: levels }, (_, level) => {
    const inner = level === 0 ? "ha" : `*l${level - 1}`;
    return `  - &l${level} [${Array.from({ length: 9 }, () => inner).join(", ")}]`;
  });
  return `only:\n${lines.join("\n")}\n`;
}

test.each([
  [
    "an unknown key",
    "timeout: 3s\nhaunted: true\n",
    /config\.yaml:2:1: unknown key "haunted"; known are runtimeEndpoint, .*, verbose, agent$/,
  ],
  ["a misspelt key", "timeuot: 4s\n", /config\.yaml:1:1: unknown key "timeuot"; did you mean timeout\?$/],
  [
    "the agent's part, also for other commands",
    "agent:\n  cap: 0\n",
    /config\.yaml:2:3: agent\.cap: expected .*, got 0$/,
  ],
  ["an undefined alias", "only: *one\n", /config\.yaml: .*one/],
  ["aliases of aliases", laughs(9), /config\.yaml: .*alias/],
  ["a key given twice", "timeout: 3s\ntimeout: 4s\n", /config\.yaml:2:1: /],
  ["a list", "- timeout\n", /config\.yaml: expected settings/],
  ["a string", "timeout\n", /config\.yaml: expected settings/],
  ["two documents", "timeout: 3s\n---\ntimeout: 4s\n", /config\.yaml:\d+:\d+: /],
  ["invalid YAML", "only: [one\n", /config\.yaml:\d+:\d+: /],
  ["a tab for indentation", "only:\n\t- one\n", /config\.yaml:2:\d+: /],
])("%s is refused with its position", async (_, content, message) => {
  await expect(resolveSettings({ config: file(content) }, { env: {} })).rejects.toThrow(message);
  await expect(resolveSettings({ config: file(content) }, { env: {} })).rejects.toThrow(SettingsError);
});

test("a requested file must exist and be a regular file", async () => {
  mkdirSync(dir.join("folder"));

  await expect(resolveSettings({ config: dir.join("none.yaml") }, { env: {} })).rejects.toThrow(
    /none\.yaml \(ENOENT\)/,
  );
  await expect(resolveSettings({ config: dir.join("folder") }, { env: {} })).rejects.toThrow(
    /folder: it is a directory/,
  );
});

test("reports the first of several errors, and how to list the others", async () => {
  const path = file("agent:\n  cap: 0\n  listen: nowhere\ntimeuot: 1s\n");

  await expect(resolveSettings({ config: path }, { env: {} })).rejects.toThrow(
    /unknown key "timeuot".* \(and 2 more: `unghost config --check` names them all\)$/,
  );
});
