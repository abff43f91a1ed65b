/** Makes the Prometheus operator's manifest of the plain rules; with --check it only says whether it is current. */
import { readFileSync, writeFileSync } from "node:fs";
import { parse, stringify } from "yaml";

const RULES = "deploy/prometheus/unghost.rules.yaml";
const MANIFEST = "deploy/prometheus/prometheusrule.yaml";

const { groups } = parse(readFileSync(RULES, "utf8")) as { readonly groups: readonly unknown[] };
const manifest = {
  apiVersion: "monitoring.coreos.com/v1",
  kind: "PrometheusRule",
  metadata: { name: "unghost", labels: { "app.kubernetes.io/name": "unghost" } },
  spec: { groups },
};
const text = `# Made of unghost.rules.yaml by scripts/prometheus-rule.ts.\n${stringify(manifest, { lineWidth: 0 })}`;

if (process.argv.includes("--check")) {
  if (readFileSync(MANIFEST, "utf8") !== text) {
    console.error(`${MANIFEST} is not current: run \`node scripts/prometheus-rule.ts\` and commit it`);
    process.exitCode = 1;
  }
} else {
  writeFileSync(MANIFEST, text);
}
