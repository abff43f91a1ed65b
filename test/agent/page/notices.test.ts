import { describe, expect, test } from "vitest";
import { noticesOf } from "../../../src/agent/page/verdict.ts";
import type { AgentState } from "../../../src/agent/state/state.ts";
import { healthyState, onTheWire } from "./agent-states.ts";

describe("notices", () => {
  const since = new Date("2026-03-01T12:00:00Z");
  const open = { open: true, message: "7 of 9 nodes became unhealthy.", since };
  const cases: readonly (readonly [string, Partial<AgentState>, readonly object[]])[] = [
    ["none on a quiet node", {}, []],
    [
      "why healing is on hold",
      { pauseReason: { reason: "paused", message: "the node is annotated" } },
      [{ title: "Healing is on hold: paused", text: "The node is annotated." }],
    ],
    [
      "the breaker, since when",
      { breaker: open },
      [
        {
          title: "The fleet's breaker is open",
          text: "7 of 9 nodes became unhealthy. It closes automatically.",
          since: since.toISOString(),
        },
      ],
    ],
    [
      "the breaker once, when it is what holds",
      { breaker: open, pauseReason: { reason: "breaker", message: "7 of 9 nodes became unhealthy." } },
      [{ title: "Healing is on hold: breaker", text: "7 of 9 nodes became unhealthy." }],
    ],
    [
      "a configuration that was rejected",
      { configProblem: "line 3: no such key." },
      [{ title: "New configuration rejected", text: "Line 3: no such key. The previous configuration stays active." }],
    ],
    [
      "that no token is required",
      { openAddress: "http://0.0.0.0:20258" },
      [{ title: "No token is required", text: expect.stringContaining("http://0.0.0.0:20258") }],
    ],
    [
      "a page that a reload did not renew",
      { version: "2.0.0" },
      [
        {
          title: "This page is out of date",
          text: "This page is version 1.2.3, the agent is version 2.0.0. Reload without the cache.",
        },
      ],
    ],
  ];
  test.each(cases)("show %s", (_name, parts, notices) => {
    expect(noticesOf(onTheWire(healthyState(parts)), "1.2.3")).toEqual(notices);
  });
});
