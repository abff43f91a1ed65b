import { describe, expect, test } from "vitest";
import { pageVerdict } from "../../../src/agent/page/verdict.ts";
import type { AgentState, Standing } from "../../../src/agent/state/state.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { ghostState, healthyState, onTheWire, sighting } from "./agent-states.ts";

const GIVEN_UP: Standing = { kind: "given-up", message: "3 attempts failed", next: "restart the plugin" };
const OBSERVED: Standing = { kind: "observed", message: "policy" };
const UNREAD = scanOf({ report: { verdict: "unknown", problems: [{ source: "cri", problem: "refused" }] } });

describe("verdict headline", () => {
  const cases: readonly (readonly [string, AgentState, ReturnType<typeof pageVerdict>])[] = [
    [
      "before the first scan",
      freshState({ node: "n1" }),
      { tone: "unsure", headline: "First scan running", detail: "The agent on n1 has started its first scan." },
    ],
    ["nothing found", healthyState(), { tone: "good", headline: "Healthy", detail: "No ghosts on edge-7." }],
    [
      "a source that could not be read",
      healthyState({ scan: UNREAD }),
      {
        tone: "unsure",
        headline: "Unknown",
        detail: "Could not determine whether there are ghosts on edge-7. Could not read: cri; see Sources.",
      },
    ],
    [
      "ghosts that the agent heals",
      ghostState([sighting(), sighting({ pod: "web-1", standing: { kind: "healing" } })]),
      { tone: "busy", headline: "2 ghosts", detail: "1 being healed, 1 waiting to be healed" },
    ],
    [
      "a ghost that it has given up",
      ghostState([sighting(), sighting({ pod: "web-1", standing: GIVEN_UP })]),
      { tone: "bad", headline: "2 ghosts", detail: "1 waiting to be healed, 1 given up" },
    ],
    [
      "a critical one that is not healed",
      ghostState([sighting({ standing: OBSERVED })]),
      { tone: "bad", headline: "1 ghost", detail: "1 observed only" },
    ],
    [
      "a harmless one that is not healed",
      ghostState([sighting({ standing: OBSERVED, severity: "info" })]),
      { tone: "busy", headline: "1 ghost", detail: "1 observed only" },
    ],
  ];
  test.each(cases)("%s", (_name, state, verdict) => {
    expect(pageVerdict(onTheWire(state))).toEqual(verdict);
  });
});
