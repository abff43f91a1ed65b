import { describe, expect, test } from "vitest";
import { watchReadiness } from "../../../src/agent/http/routes.ts";
import { openStore } from "../../../src/agent/state/store.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { ask } from "./ask.ts";
import { opened } from "./opened.ts";

const PROBLEMS = ["boot", "cri", "cri"].map((source) => ({ source, problem: "it does not answer" }));

function watched(parts: Parameters<typeof freshState>[0], nowMs = 0): ReturnType<typeof watchReadiness> {
  return watchReadiness(
    openStore(freshState(parts)),
    () => 120_000,
    () => nowMs,
  );
}

describe("readiness", () => {
  test("not ready before the first scan", () => {
    expect(watched({}).objection()).toBe("no scan has been finished since the agent's start");
  });

  test.each(["healthy", "ghosts"] as const)("ready with a recent scan with the verdict %s", (verdict) => {
    expect(watched({ scan: scanOf({ endedAtMs: 0, report: { verdict } }) }, 120_000).objection()).toBeUndefined();
  });

  test("not ready with an old scan", () => {
    expect(watched({ scan: scanOf({ endedAtMs: 0 }) }, 300_000).objection()).toBe(
      "the last scan ended 300 s ago, and one is due within 120 s",
    );
  });

  test("not ready with a scan without a verdict", () => {
    const scan = scanOf({ endedAtMs: 0, report: { verdict: "unknown", problems: PROBLEMS } });

    expect(watched({ scan }).objection()).toBe(
      "the last scan could not determine whether this node has ghosts: boot: it does not answer; cri: it does not answer. Run unghost doctor on this node",
    );
  });

  test("not ready after a failed scan, until one succeeds", () => {
    const store = openStore(freshState({ scan: scanOf({ endedAtMs: 0 }) }));
    const readiness = watchReadiness(
      store,
      () => 120_000,
      () => 0,
    );

    store.publish({ kind: "scan-failed", reason: "out of file handles" });
    const failed = readiness.objection();
    store.publish({ kind: "scanned", seconds: 1 });

    expect(failed).toBe("the last scan failed: out of file handles");
    expect(readiness.objection()).toBeUndefined();
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
