import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../lab/command.ts";
import { ensurePromtool } from "../../lab/prometheus.ts";
import { agentMetricNames, unghostMetricsIn } from "./agent-metric-names.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook: string };
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
}

interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
  }[];
}

const RULES = "deploy/prometheus/unghost.rules.yaml";
const RULE_TESTS = "deploy/prometheus/unghost.rules.test.yaml";
const MANIFEST = "deploy/prometheus/prometheusrule.yaml";
const RUNBOOKS = "docs/runbooks";

const rules = parse(readFileSync(RULES, "utf8")) as RuleFile;
const alerts = rules.groups.flatMap((group) => group.rules);
const cases = (parse(readFileSync(RULE_TESTS, "utf8")) as RuleTests).tests.flatMap((one) => one.alert_rule_test);
const promtool = await ensurePromtool();
const skipped = promtool.available ? "" : `: skipped, ${promtool.reason}`;

describe("the alert rules", () => {
  test.skipIf(!promtool.available).each([
    ["are valid", ["check", "rules", RULES]],
    ["fire and keep quiet as their tests say", ["test", "rules", RULE_TESTS]],
  ])(`%s, checked by promtool${skipped}`, async (_what, args) => {
    if (!promtool.available) throw new Error(promtool.reason);

    const { code, stdout, stderr } = await run([promtool.path, ...args]);

    expect(code, stdout + stderr).toBe(0);
  });

  test("use only metrics of the agent", async () => {
    const names = await agentMetricNames();
    const used = alerts.flatMap(({ expr }) => unghostMetricsIn(expr));

    expect(used.length).toBeGreaterThan(alerts.length / 2);
    expect(used.filter((name) => !names.has(name))).toEqual([]);
  });

  test("have a range for every rate", () => {
    for (const { alert, expr } of alerts) {
      const rates = expr.match(/\b(?:rate|increase)\(/g) ?? [];
      expect(expr.match(/\[\d+[mh]\]/g) ?? [], alert).toHaveLength(rates.length);
    }
  });

  test("the operator's manifest contains the plain file unchanged", () => {
    execFileSync(process.execPath, ["scripts/prometheus-rule.ts", "--check"], { stdio: "pipe" });
    const manifest = parse(readFileSync(MANIFEST, "utf8")) as { readonly kind: string; readonly spec: RuleFile };

    expect(manifest.kind).toBe("PrometheusRule");
    expect(manifest.spec.groups).toEqual(rules.groups);
  });
});

describe.each(alerts.map((alert) => [alert.alert, alert] as const))("%s", (name, alert) => {
  test("has severity, description and a for duration", () => {
    expect(["info", "warning", "critical"]).toContain(alert.labels.severity);
    expect(alert.for).toMatch(/^\d+[mh]$/);
    expect(alert.annotations.summary.length).toBeGreaterThan(10);
    expect(alert.annotations.description).toMatch(/\.$/);
  });

  test("has a test in which it fires and one in which it does not", () => {
    const own = cases.filter(({ alertname }) => alertname === name);

    expect(own.some(({ exp_alerts }) => exp_alerts.length > 0)).toBe(true);
    expect(own.some(({ exp_alerts }) => exp_alerts.length === 0)).toBe(true);
  });

  test("has a runbook with meaning, diagnosis, steps and how to silence it", () => {
    const path = `${RUNBOOKS}/${name}.md`;

    expect(alert.annotations.runbook).toBe(path);
    expect(existsSync(path), path).toBe(true);
    const headings = readFileSync(path, "utf8").match(/^#+ .+$/gm);
    expect(headings).toEqual([
      `# ${name}`,
      "## What it means",
      "## Diagnosis",
      "## What to do",
      "## How to silence it",
    ]);
  });
});

test("every runbook belongs to an alert", () => {
  const pages = readdirSync(RUNBOOKS).map((file) => file.replace(/\.md$/, ""));

  expect(pages.toSorted()).toEqual([...new Set(alerts.map(({ alert }) => alert))].toSorted());
});
