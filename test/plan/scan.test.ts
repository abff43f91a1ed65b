import { describe, expect, test } from "vitest";
import { DEFAULT_CAP } from "../../src/plan/policy.ts";
import { scanNode } from "../../src/plan/scan.ts";
import { FINDING } from "../heal/heal-fixture.ts";
import {
  AT_ONCE,
  containerOf,
  LOST,
  type NodeParts,
  recordOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const POLICY = { ...AT_ONCE, allDead: false, cap: DEFAULT_CAP };
const GHOSTS: NodeParts = {
  sandboxes: ["a", "b"].map((digit) => sandboxOf(digit, { createdSecondsAgo: 7200 })),
  containers: ["a", "b"].map((digit) => containerOf(digit, { exit: LOST })),
  records: ["a", "b"].map((digit) => recordOf(digit)),
};

function scanOf(node: NodeParts) {
  return { observe: () => Promise.resolve(snapshotOf(node)), policy: () => POLICY };
}

describe("a scan", () => {
  test("carries its plan", async () => {
    const { diagnosis, plan } = await scanNode(scanOf(GHOSTS));

    expect(plan.actions.map(({ finding }) => finding)).toEqual(diagnosis.findings);
    expect(diagnosis.findings).toHaveLength(2);
  });

  test("of a healthy node has an empty plan", async () => {
    const { plan } = await scanNode(scanOf({}));

    expect(plan).toEqual({ actions: [], leftAlone: [] });
    // The planner makes a new plan each time: it was not asked.
    expect((await scanNode(scanOf({}))).plan).toBe(plan);
  });

  test("plans dead sandboxes without a finding if everything dead is asked for", async () => {
    const policy = () => ({ ...POLICY, allDead: true, skip: ["dead-after-crash"] });

    const { diagnosis, plan } = await scanNode({ ...scanOf(GHOSTS), policy });

    expect(diagnosis.findings).toEqual([]);
    expect(plan.actions).toHaveLength(2);
  });

  test("plans only what was selected", async () => {
    const { plan } = await scanNode({
      ...scanOf(GHOSTS),
      select: (diagnosis) => ({ ...diagnosis, findings: diagnosis.findings.slice(0, 1) }),
    });

    expect(plan.actions).toHaveLength(1);
  });

  test("of a run has the policy of its first snapshot, and plans what the run knows", async () => {
    const first = snapshotOf(GHOSTS);
    const asked: unknown[] = [];

    const { plan } = await scanNode(
      {
        ...scanOf({}),
        policy: (snapshot) => {
          asked.push(snapshot);
          return POLICY;
        },
      },
      { first, amend: (diagnosis) => ({ ...diagnosis, findings: [UNTREATABLE] }) },
    );

    expect(asked).toEqual([first]);
    expect(plan.leftAlone.map(({ reason }) => reason.code)).toEqual(["untreatable"]);
  });

  test("of a run that knows nothing else plans what was found", async () => {
    const { plan } = await scanNode(scanOf(GHOSTS), { first: snapshotOf(GHOSTS) });

    expect(plan.actions).toHaveLength(2);
  });

  test("takes as long as it took to observe", async () => {
    const before = performance.now();

    const { startedAtMs, seconds } = await scanNode({
      ...scanOf({}),
      observe: async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return snapshotOf({});
      },
    });

    expect(startedAtMs).toBeGreaterThanOrEqual(before);
    expect(seconds * 1000).toBeGreaterThanOrEqual(19);
    expect(startedAtMs + seconds * 1000).toBeLessThanOrEqual(performance.now());
  });
});

const UNTREATABLE = { ...FINDING, untreatable: "no" } as const;
