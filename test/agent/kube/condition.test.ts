import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conditionOf } from "../../../src/agent/kube/condition.ts";
import type { AgentState } from "../../../src/agent/state/state.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { type SightingParts, sighting } from "../page/agent-states.ts";

function stateWith(found: readonly SightingParts[], parts: Partial<AgentState> = {}): AgentState {
  const sightings = found.map((one) => sighting(one));
  return freshState({ scan: scanOf({ endedAtMs: 0 }), sightings, ...parts });
}

const GIVEN_UP = { kind: "given-up", message: "three attempts failed", next: "restart the runtime" } as const;

describe("condition", () => {
  test("is undefined before the first scan", () => {
    expect(conditionOf(freshState(), 0)).toBeUndefined();
  });

  test("has a healthy reason", () => {
    expect(conditionOf(stateWith([]), 0)).toEqual({
      status: "False",
      reason: "NoGhostSandboxes",
      message: "No ghost sandbox on this node",
    });
  });

  test("counts ghosts by class and names what the worst one blocks", () => {
    const found: readonly SightingParts[] = [
      { class: "pod-gone", severity: "info", blocks: [] },
      { class: "shim-leak", severity: "warning", blocks: ["pod a/b cannot be torn down"] },
      { class: "pod-gone", severity: "critical", blocks: ["pod shop/web-0: the name web-0 stays reserved"] },
    ];

    expect(conditionOf(stateWith(found), 0)).toEqual({
      status: "True",
      reason: "GhostSandboxesPresent",
      message: "3 ghosts: 2 pod-gone, 1 shim-leak; blocked: pod shop/web-0: the name web-0 stays reserved",
    });
  });

  test("names a pod when nothing is blocked", () => {
    expect(conditionOf(stateWith([{ blocks: [] }]), 0)?.message).toBe(
      "1 ghost: 1 libcni-result-cache-corrupt; such as shop/web-0",
    );
  });

  test.each<readonly [string, Partial<AgentState>, SightingParts, string, RegExp]>([
    ["that are given up", {}, { standing: GIVEN_UP }, "GhostHealFailed", /1 given up, restart the runtime$/],
    [
      "while it is paused",
      { pauseReason: { reason: "paused", message: "the node is paused by unghost.dev/paused" } },
      {},
      "HealingPaused",
      /nothing is healed: the node is paused by unghost.dev\/paused$/,
    ],
    [
      "on a node that is opted out",
      { pauseReason: { reason: "opted-out", message: "it carries unghost.dev/ignore" } },
      {},
      "GhostHealRefused",
      /nothing is healed: it carries unghost.dev\/ignore$/,
    ],
    [
      "while much of the fleet is unhealthy",
      {
        breaker: { open: true, message: "6 of 10 nodes became unhealthy" },
        pauseReason: { reason: "breaker", message: "" },
      },
      { standing: GIVEN_UP },
      "BreakerOpen",
      /nothing is healed: 6 of 10 nodes became unhealthy$/,
    ],
    [
      "that wait for their slot",
      { pauseReason: { reason: "slots", message: "n7 and n9 are healing" } },
      {},
      "GhostSandboxesPresent",
      /waiting for other nodes to finish healing$/,
    ],
  ])("reports ghosts %s", (_when, parts, found, reason, message) => {
    const condition = conditionOf(stateWith([found], parts), 0);

    expect(condition).toMatchObject({ status: "True", reason });
    expect(condition?.message).toMatch(message);
  });

  test("of a healthy node shows a pause, and an open breaker", () => {
    const paused = stateWith([], { pauseReason: { reason: "paused", message: "the node is paused" } });
    const open = stateWith([], { breaker: { open: true, message: "6 of 10 nodes became unhealthy" } });

    expect(conditionOf(paused, 0)?.message).toBe(
      "No ghost sandbox on this node; nothing is healed: the node is paused",
    );
    expect(conditionOf(open, 0)).toMatchObject({ status: "False", message: expect.stringContaining("6 of 10") });
  });

  test("is Unknown when the node could not be read, with the first reason", () => {
    const problems = [{ source: "cri", problem: "connection refused" }];
    const scan = scanOf({ endedAtMs: 0, report: { verdict: "unknown", problems } });

    expect(conditionOf(freshState({ scan }), 0)).toEqual({
      status: "Unknown",
      reason: "NodeUnreadable",
      message: "The last scan could not determine whether there are ghosts: cri: connection refused",
    });
  });

  test("reports blocked pods when the runtime answers lists and not Status", () => {
    const pending = [{ reason: "runtime-status-hanging" as const, since: "2026-11-16T00:00:00Z", reported: [] }];
    const scan = scanOf({ endedAtMs: 0, report: { verdict: "unknown", pending } });

    expect(conditionOf(freshState({ scan }), 0)).toEqual({
      status: "True",
      reason: "PodsBlocked",
      message: "1 runtime-status-hanging",
    });
  });

  test.each([
    ["a first failed attempt while the node starts is no blocked pod", 120, 33, "False"],
    ["one that lasts is, also while the node starts", 120, 60, "True"],
    ["a first one is, later", 180, 33, "True"],
  ])("%s", (_, upSeconds, failingSeconds, status) => {
    const ago = (seconds: number) => new Date(Date.UTC(2026, 0, 1) - seconds * 1000).toISOString();
    const pending = [{ reason: "creation-failing" as const, since: ago(failingSeconds), reported: [] }];
    const boot = { id: "b", startedAt: ago(upSeconds) };
    const report = { verdict: "degraded" as const, observedAt: ago(0), boot, pending };

    expect(conditionOf(freshState({ scan: scanOf({ endedAtMs: 0, report }) }), 0)?.status).toBe(status);
  });

  test("is Unknown when no scan has finished for long, whatever the last one found", () => {
    expect(conditionOf(stateWith([{}]), 10 * 60_000)?.status).toBe("True");
    expect(conditionOf(stateWith([{}]), 10 * 60_000 + 1)).toMatchObject({ status: "Unknown", reason: "ScanOverdue" });
  });

  test("is the same for the same ghosts in any order, and has a length limit", () => {
    const found = fc.array(
      fc.record({
        class: fc.constantFrom("a", "b", "c", "d", "e", "f"),
        severity: fc.constantFrom("critical", "warning", "info"),
        blocks: fc.array(fc.string({ maxLength: 300 }), { maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 30 },
    );
    fc.assert(
      fc.property(
        found.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
        ([all, shuffled]) => {
          const one = conditionOf(stateWith(all), 0);

          expect(conditionOf(stateWith(shuffled), 0)).toEqual(one);
          expect(one?.message.length).toBeLessThanOrEqual(500);
        },
      ),
    );
  });
});
