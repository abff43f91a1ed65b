import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { run } from "../../lab/command.ts";
import { ensurePromtool } from "../../lab/prometheus.ts";
import { tempDir } from "../support/temp-dir.ts";
import { agentMetricNames, unghostMetricsIn } from "./agent-metric-names.ts";

interface Override {
  readonly matcher: { readonly options: string };
  readonly properties: readonly { readonly id: string; readonly value: readonly { readonly url: string }[] }[];
}

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly transformations?: readonly unknown[];
  readonly fieldConfig?: { readonly overrides: readonly Override[] };
  readonly description: string;
  readonly datasource: { readonly uid: string };
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly label: string; readonly definition: string }[];
  };
  readonly links: readonly { readonly title: string; readonly url: string }[];
  readonly panels: readonly Panel[];
}

const GRID_COLUMNS = 24;
const text = readFileSync("deploy/grafana/unghost.json", "utf8");
const dashboard = JSON.parse(text) as Dashboard;
const { panels } = dashboard;
const promtool = await ensurePromtool();
const skipped = promtool.available ? "" : `: skipped, ${promtool.reason}`;

function overlap(a: Panel["gridPos"], b: Panel["gridPos"]): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

describe("the dashboard", () => {
  test("lets its data source be chosen, also where a sidecar provisions it without an import", () => {
    const sources: string[] = [];
    JSON.parse(text, (key, value: unknown) => {
      if (key === "datasource") sources.push(JSON.stringify(value));
      return value;
    });

    expect(dashboard.templating.list[0]).toMatchObject({ name: "datasource", type: "datasource", query: "prometheus" });
    expect(sources.length).toBeGreaterThan(panels.length);
    expect(new Set(sources)).toEqual(new Set(['{"type":"prometheus","uid":"${datasource}"}']));
    expect(dashboard).toMatchObject({ id: null, uid: "unghost" });
    expect(text).not.toContain("__inputs");
    expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
  });

  test.skipIf(!promtool.available)(`contains valid PromQL, checked by promtool${skipped}`, async () => {
    if (!promtool.available) throw new Error(promtool.reason);
    const dir = tempDir();
    const asked = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const rules = asked.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*").replaceAll("$cluster", ".*"),
    }));
    // Every JSON document is a YAML document too.
    writeFileSync(dir.join("rules.yaml"), JSON.stringify({ groups: [{ name: "panels", rules }] }));

    const { code, stdout, stderr } = await run([promtool.path, "check", "rules", dir.join("rules.yaml")]);
    dir.remove();

    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toContain(`${asked.length} rules found`);
  });

  test("uses only metrics of the agent", async () => {
    const names = await agentMetricNames();
    const asked = unghostMetricsIn(text);

    expect(asked.length).toBeGreaterThan(panels.length);
    expect(asked.filter((name) => !names.has(name))).toEqual([]);
  });

  test("shows every metric of the agent", async () => {
    const shown = new Set(unghostMetricsIn(text).map((name) => name.replace(/_bucket$/, "")));
    const names = [...(await agentMetricNames())].filter((name) => name.startsWith("unghost_"));

    const unseen = names.filter((name) => !shown.has(name.replace(/_(?:bucket|sum|count)$/, "")));

    expect(unseen).toEqual([]);
  });

  test.each(panels.map((panel) => [panel.title, panel] as const))(
    "%s has a description and its own data source",
    (_title, panel) => {
      expect(panel.title).not.toBe("");
      expect(panel.description).toMatch(/^[A-Z].+\.$/);
      expect(panel.targets).not.toEqual([]);
      for (const { datasource } of [panel, ...panel.targets]) expect(datasource.uid).toBe("${datasource}");
      for (const { expr } of panel.targets) expect(expr).toContain('instance=~"$instance"');
    },
  );

  test("can be filtered by clusters and nodes", () => {
    const variables = dashboard.templating.list.map(({ name, label }) => [name, label]);
    expect(variables).toEqual([
      ["datasource", "Data source"],
      ["cluster", "Cluster"],
      ["instance", "Node"],
      ["runbooks", "Runbooks at"],
    ]);
    for (const { expr } of panels.flatMap(({ targets }) => targets)) expect(expr).toContain('cluster=~"$cluster"');
    expect(dashboard.links).toMatchObject([{ title: "Runbooks", url: "${runbooks}" }]);
  });

  test.each([
    ["192.0.2.11:20258", "http://192.0.2.11:20258/"],
    ["edge-7", "http://edge-7:20258/"],
    ["[2001:db8::1]:20258", "http://[2001:db8::1]:20258/"],
  ])("has a table of nodes and classes; the row of instance %s links to %s", (instance, page) => {
    const table = panels.find(({ type }) => type === "table");
    const expr = table?.targets[0]?.expr ?? "";
    const [, pattern = ""] = /"instance", "(.*)"\)/.exec(expr) ?? [];
    const node = new RegExp(`^(?:${pattern})$`).exec(instance)?.[1] ?? "";
    const matrix = { columnField: "class", rowField: "node", valueField: "Value" };

    expect(expr).toMatch(/^sum by \(node, class\) /);
    expect(table?.transformations).toEqual([{ id: "groupingToMatrix", options: matrix }]);
    const [override] = table?.fieldConfig?.overrides ?? [];
    expect(override?.matcher.options).toBe("node\\class");
    const [link] = override?.properties.find(({ id }) => id === "links")?.value ?? [];
    expect(link?.url.replace("${__value.text}", node)).toBe(page);
  });

  test("has no two panels with the same id or position, and none wider than the grid", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const [index, { title, gridPos }] of panels.entries()) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(GRID_COLUMNS);
      const over = panels.slice(index + 1).filter((other) => overlap(gridPos, other.gridPos));
      expect(
        over.map((other) => other.title),
        title,
      ).toEqual([]);
    }
  });
});
