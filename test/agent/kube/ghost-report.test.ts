import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { conditionOf } from "../../../src/agent/kube/condition.ts";
import { ghostReportOf } from "../../../src/agent/kube/ghost-report.ts";
import type { AgentState, Sighting } from "../../../src/agent/state/state.ts";
import type { GhostReportStatus } from "../../../src/kube/ghost-report.ts";
import type { NodeReport } from "../../../src/report/node-report.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";
import { sighting } from "../page/agent-states.ts";

function reported(
  sightings: readonly Sighting[],
  report: Partial<NodeReport> = {},
  parts: Partial<AgentState> = {},
): GhostReportStatus {
  const verdict = sightings.length === 0 ? "healthy" : "ghosts";
  const state = freshState({ sightings, scan: scanOf({ report: { verdict, ...report }, endedAtMs: 0 }), ...parts });
  const condition = conditionOf(state, 0);
  const status = condition && ghostReportOf(state, condition);
  if (status === undefined) throw new Error("there is no report after a scan");
  return status;
}

function pods(count: number, name: string): { readonly namespace: string; readonly name: string }[] {
  return Array.from({ length: count }, (_, index) => ({ namespace: "shop", name: `${name}-${index}` }));
}

describe("GhostReport", () => {
  test("of a healthy node has its verdict and counts, and no lists", () => {
    const sandboxes = { total: 14, ready: 13, notReady: 1 };

    expect(JSON.parse(JSON.stringify(reported([], { sandboxes })))).toEqual({
      verdict: "healthy",
      observedAt: "2026-03-01T12:01:00Z",
      agentVersion: "1.2.3",
      sandboxes,
      totals: { findings: 0, blockedPods: 0 },
      truncated: false,
      conditions: [
        {
          type: "GhostSandboxes",
          status: "False",
          reason: "NoGhostSandboxes",
          message: "No ghost sandbox on this node",
          lastTransitionTime: "",
        },
      ],
    });
  });

  test("has the last heals of the journal, the newest first, and those of the command line as well", () => {
    const item = {
      finding: "f",
      class: "shim-leak",
      subject: "shop/web-0",
      outcome: "done",
      did: [],
      undo: [],
    } as const;
    const runs = Array.from({ length: 12 }, (_, index) => ({
      run: `run-${index}`,
      at: "2026-03-01T11:00:00.123Z",
      by: "cli" as const,
      items: [item],
      more: 0,
    }));

    const { heals = [] } = reported([], {}, { runs });

    expect(heals).toHaveLength(10);
    expect(heals[0]).toEqual({
      at: "2026-03-01T11:00:00Z",
      run: "run-0",
      by: "cli",
      class: "shim-leak",
      subject: "shop/web-0",
      outcome: "done",
    });
  });

  test("has the worst finding first, counts by class, and each blocked pod once", () => {
    const leak = sighting({ pod: "leak", class: "shim-leak", severity: "warning", blocks: [], blockedPods: [] });
    const ghosts = [sighting({ pod: "web-1" }), sighting({ pod: "web-0", blockedPods: pods(2, "web") })];
    const status = reported([leak, ...ghosts], { podCreation: { able: "unknown", blockedPods: pods(1, "web") } });

    expect(status).toMatchObject({
      worstClass: "libcni-result-cache-corrupt",
      totals: { findings: 3, blockedPods: 2 },
      classes: [
        { class: "libcni-result-cache-corrupt", count: 2 },
        { class: "shim-leak", count: 1 },
      ],
      blockedPods: ["shop/web-0", "shop/web-1"],
      truncated: false,
    });
    expect(status.findings?.map(({ pod, blocks }) => [pod, blocks])).toEqual([
      ["shop/web-0", 2],
      ["shop/web-1", 1],
      ["shop/leak", 0],
    ]);
  });

  test("has since when the node cannot create pods: the first pod that waits for its sandbox", () => {
    const failing = (since: string, reason: "creation-failing" | "removal-failing" | "creation-in-flight") =>
      ({ reason, since, reported: [] }) as const;
    const { podCreation } = reported([], {
      podCreation: {
        able: "no",
        lastSuccess: { at: "2026-03-01T11:00:00.500Z", pod: { namespace: "a", name: "b" } },
        lastFailure: { at: "2026-03-01T12:00:30Z", code: "daemon-unreachable", message: "dial unix: refused" },
        blockedPods: [],
      },
      pending: [
        failing("2026-03-01T11:59:00Z", "creation-failing"),
        failing("2026-03-01T11:58:00Z", "creation-failing"),
        failing("2026-03-01T11:00:00Z", "removal-failing"),
        failing("2026-03-01T11:01:00Z", "creation-in-flight"),
      ],
    });

    expect(podCreation).toEqual({
      able: "no",
      since: "2026-03-01T11:58:00Z",
      lastSuccessAt: "2026-03-01T11:00:00Z",
      lastFailureAt: "2026-03-01T12:00:30Z",
      code: "daemon-unreachable",
      message: "dial unix: refused",
    });
  });

  test("has the manual steps of a finding that was given up, and why nothing is healed", () => {
    const standing = { kind: "given-up", message: "3 attempts failed.", next: "Restart containerd." } as const;
    const pauseReason = { reason: "paused", message: "the node is paused" } as const;
    const status = reported([sighting({ standing })], {}, { pauseReason });

    expect(status.findings?.[0]).toMatchObject({ standing: "given-up", next: "Restart containerd." });
    expect(status.notHealing).toContain("the node is paused");
  });

  test("escapes terminal sequences in names and messages", () => {
    const hostile = sighting({ pod: "web\u001b]0;x\u0007", summary: "\u001b[2J gone \u202e" });
    const status = reported([hostile]);

    const texts = JSON.stringify(status);
    for (const hidden of ["\\u001b", "\\u0007", "\u202e"]) expect(texts).not.toContain(hidden);
    expect(status.findings?.[0]?.pod).toContain("\\x1b");
  });

  test("has 8 KiB at most with its metadata, whatever a node has, and then it is marked", () => {
    fc.assert(
      fc.property(
        fc.nat(400),
        fc.nat(400),
        fc.string({ unit: "grapheme", maxLength: 5000 }),
        fc.string({ minLength: 1, maxLength: 253 }),
        (ghosts, blocked, text, name) => {
          const many = Array.from({ length: ghosts }, (_, index) =>
            sighting({ pod: `${name}-${index}`, summary: text, class: `class-${index % 40}` }),
          );
          const status = reported(many, { podCreation: { able: "no", blockedPods: pods(blocked, name) } });

          expect(Buffer.byteLength(JSON.stringify(status))).toBeLessThanOrEqual(6600);
          expect(status.totals.findings).toBe(ghosts);
          const isComplete =
            (status.findings?.length ?? 0) === ghosts &&
            (status.blockedPods?.length ?? 0) === status.totals.blockedPods &&
            (status.classes?.length ?? 0) === Math.min(ghosts, 40);
          expect(status.truncated).toBe(!isComplete);
        },
      ),
      { numRuns: 60 },
    );
  });
});
