import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cached } from "../../lab/cache.ts";
import { run, runOrThrow } from "../../lab/command.ts";
import { tempDir } from "../support/temp-dir.ts";

const DASHBOARD = readFileSync("deploy/grafana/unghost.json", "utf8").trim();
const VERSION = "13.2.3";
const PANELS = ["stat", "table", "timeseries"] as const;

/** In a dashboard's JSON an enum is its text. `definition` is what Grafana itself exports beside a variable's query. */
const TYPES = `import type { Dashboard, VariableModel } from "./schema/dist/types/raw/dashboard/x/types.gen";
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [Key in keyof T]: Plain<T[Key]> } : T;
type Variable = Plain<VariableModel> & { definition?: string };
type Exported = Omit<Plain<Dashboard>, "templating"> & { __requires: unknown; templating: { list: Variable[] } };
`;

test("the dashboard is what Grafana's published types describe, and so are the options of each panel", async () => {
  const imports = PANELS.map(
    (type) =>
      `import type { Options as ${type} } from "./schema/dist/types/raw/composable/${type}/panelcfg/x/types.gen";\n`,
  ).join("");

  expect(
    await compile(`${TYPES}${imports}export const dashboard = ${DASHBOARD} satisfies Exported;
${panelOptions()}`),
  ).toEqual([0, ""]);
});

test("the types refuse a field that Grafana would not understand", async () => {
  const wrong = DASHBOARD.replace('"graphTooltip": 1', '"graphTooltip": "one"');

  const [code, printed] = await compile(`${TYPES}export const dashboard = ${wrong} satisfies Exported;`);

  expect([code === 0, printed]).toEqual([false, expect.stringContaining("DashboardCursorSync")]);
});

function panelOptions(): string {
  const { panels } = JSON.parse(DASHBOARD) as {
    readonly panels: readonly { type: (typeof PANELS)[number]; options: object }[];
  };
  return panels
    .map(
      ({ type, options }, index) =>
        `export const options${index} = ${JSON.stringify(options)} satisfies Partial<Plain<${type}>>;\n`,
    )
    .join("");
}

async function compile(source: string): Promise<readonly [number | undefined, string]> {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  symlinkSync(await grafanaSchema(), dir.join("schema"));
  writeFileSync(dir.join("dashboard.ts"), source);
  const flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"];
  const tsc = resolve("node_modules/.bin/tsc");
  const { code, stdout } = await run([tsc, ...flags, "dashboard.ts"], { cwd: dir.path, timeoutMs: 120_000 });
  return [code, stdout];
}

/** Grafana's own package of types, in the lab's cache. */
async function grafanaSchema(): Promise<string> {
  const dir = await cached(`grafana-schema-${VERSION}`, async (into) => {
    await runOrThrow(["npm", "pack", "--silent", `@grafana/schema@${VERSION}`], { cwd: into, timeoutMs: 120_000 });
    const [archive = ""] = await readdir(into);
    await runOrThrow(["tar", "xzf", archive], { cwd: into });
  });
  return join(dir, "package");
}
