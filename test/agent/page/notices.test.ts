import { describe, expect, test } from "vitest";
import { noticesOf } from "../../../src/agent/page/notices.ts";
import type { AgentState } from "../../../src/agent/state.ts";
import { healthyState, onTheWire } from "./agent-states.ts";

describe("notices", () => {
  const since = new Date("2026-03-01T12:00:00Z");
  const open = { open: true, message: "7 of 9 nodes became unhealthy.", since };
  const cases: readonly (readonly [string, Partial<AgentState>, readonly object[]])[] = [
    ["none on a quiet node", {}, []],
    [
      "why nothing is acted upon",
      { pauseReason: { reason: "paused", message: "the node is annotated" } },
      [{ title: "Nothing is acted upon: paused", text: "the node is annotated" }],
    ],
    [
      "the breaker, since when",
      { breaker: open },
      [
        {
          title: "The fleet's breaker is open",
          text: "7 of 9 nodes became unhealthy. It closes by itself.",
          since: since.toISOString(),
        },
      ],
    ],
    [
      "the breaker once, when it is what holds",
      { breaker: open, pauseReason: { reason: "breaker", message: "7 of 9 nodes became unhealthy." } },
      [{ title: "Nothing is acted upon: breaker", text: "7 of 9 nodes became unhealthy." }],
    ],
    [
      "a configuration that was not taken over",
      { configProblem: "line 3: no such key." },
      [
        {
          title: "The configuration file was not taken over",
          text: "line 3: no such key. The configuration before it is still in force.",
        },
      ],
    ],
    [
      "that everybody may read it",
      { openAddress: "http://0.0.0.0:20258" },
      [{ title: "No token is required", text: expect.stringContaining("http://0.0.0.0:20258") }],
    ],
    [
      "a page that a reload did not renew",
      { version: "2.0.0" },
      [
        {
          title: "Something keeps an old page",
          text: "This page is of version 1.2.3, the agent of 2.0.0. Reload without the cache.",
        },
      ],
    ],
  ];
  test.each(cases)("tell %s", (_name, parts, notices) => {
    expect(noticesOf(onTheWire(healthyState(parts)), "1.2.3")).toEqual(notices);
  });
});
