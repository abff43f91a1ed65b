import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { effectiveValues, inspectConfig } from "../../src/cli/commands/config.ts";
import { durationText } from "../../src/cli/settings/kinds.ts";
import { AgentSection, policyFrom } from "../../src/cli/settings/policy.ts";
import { NODE } from "../../src/cli/settings/table.ts";
import { tempDir } from "../support/temp-dir.ts";

const PAGE = readFileSync("docs/configuration.md", "utf8");
const ROWS = [...PAGE.matchAll(/^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].map(
  ([, key = "", byDefault = ""]) => ({ key, byDefault }),
);

/** The parts of valibot's schemas that may contain keys. */
interface SchemaParts {
  readonly type?: string;
  readonly wrapped?: SchemaParts;
  readonly pipe?: readonly SchemaParts[];
  readonly entries?: Readonly<Record<string, SchemaParts>>;
  readonly value?: SchemaParts;
  readonly item?: SchemaParts;
}

/** Every key below a schema, in the notation of the page. */
function keysBelow(schema: SchemaParts, path: string): readonly string[] {
  if (schema.wrapped !== undefined) return keysBelow(schema.wrapped, path);
  if (schema.pipe !== undefined) return schema.pipe.flatMap((part) => keysBelow(part, path));
  if (schema.type === "record") return keysBelow(schema.value ?? {}, `${path}.<class>`);
  if (schema.type === "array") return keysBelow(schema.item ?? {}, `${path}[]`);
  if (schema.type !== "loose_object") return [];
  return Object.entries(schema.entries ?? {}).flatMap(([key, entry]) => {
    const below = keysBelow(entry, `${path}.${key}`);
    return below.length > 0 ? below : [`${path}.${key}`];
  });
}

async function configWith(content: string) {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  writeFileSync(dir.join("config.yaml"), content);
  return await inspectConfig({ config: dir.join("config.yaml") }, {});
}

describe("docs/configuration.md", () => {
  test("has a row for every key, and for no other", () => {
    const keys = [...Object.keys(NODE), ...keysBelow(AgentSection, "agent")];

    expect(keys.length).toBeGreaterThan(40);
    expect(ROWS.map(({ key }) => key).toSorted()).toEqual(keys.toSorted());
  });

  test("has the defaults of the code", async () => {
    const inspected = await configWith("");
    if (!inspected.ok) throw new Error(inspected.problems.join("\n"));
    const holds = new Map(effectiveValues(inspected.value).map(({ path, value }) => [path.join("."), value]));

    for (const { key, byDefault } of ROWS) {
      if (!holds.has(key) || key === "node") continue;
      const value = holds.get(key);
      const isNothing = value === null || (Array.isArray(value) && value.length === 0);
      expect(byDefault, key).toBe(isNothing ? "none" : `\`${JSON.stringify(value).replaceAll('"', "")}\``);
    }
  });

  test.each([
    ["healed automatically, and a pod waits for it", "dead-after-crash"],
    ["healed automatically, a leak that blocks nothing (C in classes.md)", "netns-and-veth-leak"],
    ["everything else, if it is set to `heal`", "shim-leak"],
  ])("has the default policy of a class that is %s", (kind, id) => {
    const policy = policyFrom({}).classes.get(id);
    if (policy === undefined) throw new Error(`no class ${id}`);
    const [minAge, within, coolDown] = [policy.minAgeMs, policy.attemptsWithinMs, policy.coolDownMs].map(durationText);

    expect(PAGE).toContain(`| ${kind} | \`${minAge}\` | ${policy.attempts} | \`${within}\` | \`${coolDown}\` |`);
  });

  test("gives an example that is valid", async () => {
    const examples = [...PAGE.matchAll(/```yaml\n(.*?)```/gs)].map(([, example = ""]) => example);

    expect(examples).not.toEqual([]);
    for (const example of examples) expect(await configWith(example)).toMatchObject({ ok: true });
  });
});
