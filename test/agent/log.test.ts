import { describe, expect, test } from "vitest";
import { type LogLevel, logEvents, openLog } from "../../src/agent/log.ts";
import type { AgentEvent } from "../../src/agent/state/state.ts";
import { openStore } from "../../src/agent/state/store.ts";
import { freshState, sightingOf } from "./metrics/agent-state.ts";

function logged(events: readonly AgentEvent[], level: LogLevel = "info"): readonly Record<string, unknown>[] {
  const lines: string[] = [];
  const store = openStore(freshState());
  const stop = logEvents(
    store,
    openLog(level, (line) => lines.push(line)),
  );
  for (const event of events) store.publish(event);
  stop();
  store.publish({ kind: "scan-failed", reason: "after the end" });
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const detected: AgentEvent = { kind: "detected", sighting: sightingOf("dead-after-crash") };

describe("agent log", () => {
  test.each([
    ["debug", 7],
    ["info", 6],
    ["warn", 4],
    ["error", 3],
  ] as const)("to journald a line of level %s has priority %i", (level, priority) => {
    const lines: string[] = [];

    openLog("debug", (line) => lines.push(line), true)[level]("message");

    const [, number, json = ""] = /^<(\d)>(.*)$/s.exec(lines.join("")) ?? [];
    expect([Number(number), JSON.parse(json)]).toEqual([priority, expect.objectContaining({ level })]);
  });

  test("writes one JSON object per line, with a constant message and the rest in fields", () => {
    expect(logged([detected])).toEqual([
      expect.objectContaining({
        level: "warn",
        time: expect.stringMatching(/^\d{4}-/),
        msg: "ghost detected",
        class: "dead-after-crash",
        finding: expect.stringContaining("dead-after-crash"),
      }),
    ]);
  });

  test("logs a given-up finding as an error with the next step", () => {
    const standing = { kind: "given-up", message: "3 attempts did not heal it", next: "Restart the runtime." } as const;
    const [line] = logged([{ kind: "given-up", sighting: sightingOf("dead-after-crash", 0, standing) }]);

    expect(line).toMatchObject({ level: "error", message: standing.message, next: standing.next });
  });

  test("logs a change of the verdict as a warning with problem and next step", () => {
    const words = { problem: "cri: it does not answer", next: "Restart containerd." };
    const [line] = logged([{ kind: "verdict", from: "healthy", to: "unknown", ...words }]);

    expect(line).toMatchObject({ level: "warn", msg: "verdict changed", from: "healthy", to: "unknown", ...words });
  });

  test("does not throw when the log cannot be written", () => {
    const log = openLog("info", () => {
      throw new Error("ENOSPC");
    });

    expect(() => log.info("something")).not.toThrow();
  });

  test("logs scans at debug level", () => {
    const scanned: AgentEvent = { kind: "scanned", seconds: 0.1 };

    expect([logged([scanned]), logged([scanned], "debug").length]).toEqual([[], 1]);
  });

  test("limits the lines about thousands of ghosts, and still logs other events", () => {
    const flood = Array.from({ length: 5000 }, () => detected);

    const lines = logged([...flood, { kind: "scan-failed", reason: "boom" }]);

    expect(lines.length).toBeLessThan(100);
    expect(lines.at(-1)).toMatchObject({ msg: "scan failed", reason: "boom" });
  });
});
