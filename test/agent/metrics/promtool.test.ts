import { expect, test } from "vitest";
import { run } from "../../../lab/command.ts";
import { ensurePromtool } from "../../../lab/prometheus.ts";
import { agentMetrics } from "../../../src/agent/metrics/agent-metrics.ts";
import { openStore } from "../../../src/agent/state/store.ts";
import { freshState, NO_COUNTS, scanOf, sightingOf } from "./agent-state.ts";

const promtool = await ensurePromtool();
const skipped = promtool.available ? "" : `: skipped, ${promtool.reason}`;

const HOSTILE_NETWORK = 'a "quoted"\nname \\ with # and ü';
const BUSY = freshState({
  scan: scanOf({ counts: { ...NO_COUNTS, leases: [{ network: HOSTILE_NETWORK, state: "leaked", count: 3 }] } }),
  sightings: [sightingOf("pod-gone")],
});

test.skipIf(!promtool.available).each([
  ["a fresh agent", freshState()],
  ["a busy agent on a node with odd names", BUSY],
])(`promtool accepts the metrics of %s${skipped}`, async (_which, state) => {
  if (!promtool.available) throw new Error(promtool.reason);
  const text = await agentMetrics(openStore(state), { process: true }).render();

  const checked = await run([promtool.path, "check", "metrics"], { stdin: text });

  expect(checked).toMatchObject({ code: 0, stdout: "", stderr: "" });
});
