import { expect, test } from "vitest";
import { afterScan } from "../../src/agent/state-changes.ts";
import { freshState, NO_COUNTS, scanOf } from "./metrics/agent-state.ts";

const OBSERVED_AT = "2026-03-01T12:00:00.000Z";

function success(at: string) {
  const lastSuccess = { at, pod: { namespace: "default", name: `pod-${at}` } };
  return { observedAt: OBSERVED_AT, podCreation: { able: "yes" as const, blockedPods: [], lastSuccess } };
}

test.each([
  ["a later one", "2026-03-01T11:50:00.000Z", "2026-03-01T11:59:00.000Z", "2026-03-01T11:59:00.000Z"],
  ["none that is left", "2026-03-01T11:50:00.000Z", undefined, "2026-03-01T11:50:00.000Z"],
  ["an earlier one that is left", "2026-03-01T11:50:00.000Z", "2026-03-01T11:00:00.000Z", "2026-03-01T11:50:00.000Z"],
  [
    "one after the clock was set back",
    "2026-03-02T00:00:00.000Z",
    "2026-03-01T11:00:00.000Z",
    "2026-03-01T11:00:00.000Z",
  ],
])("the last success never goes back from one scan to the next, which sees %s", (_, earlier, later, expected) => {
  const none = { observedAt: OBSERVED_AT, podCreation: { able: "yes" as const, blockedPods: [] } };
  const before = scanOf({ endedAtMs: 0, report: success(earlier) });
  const { report } = scanOf({ report: later === undefined ? none : success(later) });
  const now = { ms: 1, wallClock: new Date(OBSERVED_AT) };
  const growth = { crashRestarts: 0, kernelStalls: 0 };

  const { state } = afterScan(freshState({ scan: before }), { report, counts: NO_COUNTS, growth, seconds: 1, now });

  expect(state.scan?.report.podCreation?.lastSuccess?.at).toBe(expected);
});
