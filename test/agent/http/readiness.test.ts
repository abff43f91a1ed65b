import { describe, expect, test } from "vitest";
import { notReadyBecause } from "../../../src/agent/http/routes.ts";
import { afterFailedScan, afterScan } from "../../../src/agent/state-changes.ts";
import { freshState, NO_COUNTS, scanOf } from "../metrics/agent-state.ts";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

const PROBLEMS = ["boot", "cri", "cri"].map((source) => ({ source, problem: "it does not answer" }));

function objection(parts: Parameters<typeof freshState>[0], nowMs = 0): string | undefined {
  return notReadyBecause(freshState(parts), 120_000, nowMs);
}

describe("readiness", () => {
  test("not ready before the first scan", () => {
    expect(objection({})).toBe("no scan has been finished since the agent's start");
  });

  test.each(["healthy", "ghosts"] as const)("ready with a recent scan with the verdict %s", (verdict) => {
    expect(objection({ scan: scanOf({ endedAtMs: 0, report: { verdict } }) }, 120_000)).toBeUndefined();
  });

  test("not ready with an old scan", () => {
    expect(objection({ scan: scanOf({ endedAtMs: 0 }) }, 300_000)).toBe(
      "the last scan ended 300 s ago, and one is due within 120 s",
    );
  });

  test("not ready with a scan without a verdict", () => {
    const scan = scanOf({ endedAtMs: 0, report: { verdict: "unknown", problems: PROBLEMS } });

    expect(objection({ scan })).toBe(
      "the last scan could not determine whether this node has ghosts: boot: it does not answer; cri: it does not answer. Run unghost doctor on this node",
    );
  });

  test("not ready after a failed scan, until one succeeds", () => {
    const failed = afterFailedScan(freshState({ scan: scanOf({ endedAtMs: 0 }) }), "out of file handles", new Date());
    const [report, counts] = [scanOf().report, NO_COUNTS];
    const now = { ms: 0, wallClock: new Date() };
    const growth = { crashRestarts: 0, kernelStalls: 0 };
    const next = afterScan(failed.state, { report, counts, growth, seconds: 1, now });

    expect(notReadyBecause(failed.state, 120_000, 0)).toBe("the last scan failed: out of file handles");
    expect(notReadyBecause(next.state, 120_000, 0)).toBeUndefined();
  });
});

test("/readyz returns the reason in one sentence, then ok", async () => {
  const { address, store } = await opened();
  const before = await ask(address, "/readyz");

  store.update((state) => ({ ...state, scan: scanOf() }));

  expect(before).toMatchObject({
    status: 503,
    text: "Not ready: no scan has been finished since the agent's start.\n",
  });
  expect(await ask(address, "/readyz")).toMatchObject({ status: 200, text: "ready\n" });
});
