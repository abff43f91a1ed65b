import { describe, expect, test } from "vitest";
import { clockAheadMs } from "../../../src/agent/page/live.ts";
import type { WireState } from "../../../src/agent/page/wire.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { onTheWire } from "./agent-states.ts";

const STARTED = new Date("2026-03-01T00:00:00Z");

function scannedAt(observedAt: string, startedAt = STARTED): WireState {
  return onTheWire(freshState({ startedAt, scan: scanOf({ report: { observedAt }, seconds: 2 }) }));
}

describe("clock of the node", () => {
  const first = scannedAt("2026-03-01T12:00:00.000Z");
  const second = scannedAt("2026-03-01T12:01:00.000Z");
  const arrived = Date.parse("2026-03-01T12:06:02.000Z");

  test("is known from a scan that arrives while connected", () => {
    expect(clockAheadMs(first, second, arrived)).toBe(300_000);
  });

  test.each([
    ["from the first message, which may be of an old scan", undefined, second],
    ["from a message about something else", second, second],
    ["from another agent's first scan", scannedAt("2026-03-01T11:00:00.000Z", new Date(0)), second],
    ["without a scan", first, onTheWire(freshState())],
  ])("is not known %s", (_name, before, state) => {
    expect(clockAheadMs(before, state, arrived)).toBeUndefined();
  });
});
