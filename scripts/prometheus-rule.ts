/**
 * Generates the Prometheus operator's manifest from the plain rules, and the copies of rules and dashboard inside the
 * chart, which helm cannot read from elsewhere. With --check it only reports whether they are current.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { parse, stringify } from "yaml";

const RULES = "deploy/prometheus/unghost.rules.yaml";
const CHART_FILES = "deploy/helm/unghost/files";

const rules = readFileSync(RULES, "utf8");
const { groups } = parse(rules) as { readonly groups: readonly unknown[] };
const manifest = {
  apiVersion: "monitoring.coreos.com/v1",
  kind: "PrometheusRule",
  metadata: { name: "unghost", labels: { "app.kubernetes.io/name": "unghost" } },
  spec: { groups },
};

const made = {
  "deploy/prometheus/prometheusrule.yaml": `# Made of unghost.rules.yaml by scripts/prometheus-rule.ts.\n${stringify(manifest, { lineWidth: 0 })}`,
  [`${CHART_FILES}/unghost.rules.yaml`]: rules,
  [`${CHART_FILES}/dashboard.json`]: readFileSync("deploy/grafana/unghost.json", "utf8"),
};

for (const [path, text] of Object.entries(made)) {
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    console.error(`${path} is not current: run \`node scripts/prometheus-rule.ts\` and commit it`);
    process.exitCode = 1;
  }
}
