import { agentMetrics } from "../../src/agent/metrics/agent-metrics.ts";
import { openStore } from "../../src/agent/state/store.ts";
import { freshState, NO_COUNTS, scanOf } from "../agent/metrics/agent-state.ts";
import { namesIn } from "../agent/metrics/exposition.ts";

const SCANNED = freshState({
  scan: scanOf({ counts: { ...NO_COUNTS, leases: [{ network: "cbr0", state: "used", count: 1 }] } }),
});

/** Every metric name of the agent once it has seen a network. */
export async function agentMetricNames(): Promise<ReadonlySet<string>> {
  return namesIn(await agentMetrics(openStore(SCANNED), { process: true }).render());
}

/** The agent's metrics in a PromQL expression. */
export function unghostMetricsIn(expression: string): readonly string[] {
  return expression.match(/\bunghost_\w+/g) ?? [];
}
