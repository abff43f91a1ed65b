import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { REFUSAL_REASONS } from "../../src/agent/state/state.ts";
import { agentMetricNames, unghostMetricsIn } from "./agent-metric-names.ts";

const page = readFileSync("docs/metrics.md", "utf8");

function withoutSuffix(name: string): string {
  return name.replace(/_seconds_(?:bucket|sum|count)$/, "_seconds");
}

test("docs/metrics.md has every metric of the agent, and no other", async () => {
  const names = [...(await agentMetricNames())].filter((name) => name.startsWith("unghost_")).map(withoutSuffix);

  expect([...new Set(unghostMetricsIn(page))].toSorted()).toEqual([...new Set(names)].toSorted());
});

test("docs/metrics.md has every reason of a refusal", () => {
  expect(page).toContain(REFUSAL_REASONS.join(", "));
});
