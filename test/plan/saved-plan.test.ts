import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Plan, PlannedAction } from "../../src/plan/plan.ts";
import { planDigest, unchangedSince } from "../../src/plan/saved-plan.ts";

describe("the digest of a plan", () => {
  test("does not depend on the order of its actions", () => {
    expect(planDigest(planOf("a", "b"))).toBe(planDigest(planOf("b", "a")));
  });

  test("is a SHA-256 in hex, and the same without follow-ups as with an empty list of them", () => {
    const [action] = planOf("a").actions;
    const digest = planDigest(planOf("a"));

    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(planDigest({ actions: [{ ...action, followUps: [] } as PlannedAction], leftAlone: [] })).toBe(digest);
  });

  test.each<readonly [string, Partial<PlannedAction>]>([
    ["another step", { steps: [{ kind: "remove-netns", path: "/run/netns/cni-2", inode: 7n }] }],
    ["another proof of a step", { steps: [{ kind: "remove-netns", path: "/run/netns/cni-1", inode: 8n }] }],
    ["another reason", { reason: { code: "no-container", text: "" } }],
    ["a follow-up", { followUps: [{ kind: "await-socket", path: "/csi.sock" }] }],
  ])("changes with %s", (_, change) => {
    const [action] = planOf("a").actions;

    expect(planDigest({ actions: [{ ...action, ...change } as PlannedAction], leftAlone: [] })).not.toBe(
      planDigest(planOf("a")),
    );
  });
});

test("what a later plan adds or does otherwise is not executed", () => {
  const narrowed = unchangedSince(planOf("a", "b"))(planOf("b", "c"));

  expect(narrowed.actions.map((action) => action.finding.id)).toEqual(["b"]);
});

const FINDING: Finding = {
  id: "",
  class: "netns-and-veth-leak",
  severity: "warning",
  subject: { type: "netns", path: "/run/netns/cni-1" },
  summary: "",
  evidence: [],
  blocks: [],
  treatment: { automatic: true, reversible: false, steps: [] },
  cure: [],
};

function planOf(...ids: readonly string[]): Plan {
  const actions = ids.map((id) => ({
    finding: { ...FINDING, id },
    rank: "rest" as const,
    steps: [{ kind: "remove-netns" as const, path: "/run/netns/cni-1", inode: 7n }],
    reason: { code: "cure" as const, text: "" },
    lane: id,
  }));
  return { actions, leftAlone: [] };
}
