import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { sandboxId } from "../../src/node/types/ids.ts";
import type { Plan } from "../../src/plan/plan.ts";
import { buildReport, reportedFinding } from "../../src/report/build.ts";
import { type PlanContext, renderPlan, withPlan } from "../../src/report/plan.ts";
import { AT_ONCE, snapshotOf } from "../support/snapshot-builder.ts";

const OPTIONS = { colour: false, columns: 100, verbose: false };

function finding(digit: string): Finding {
  return {
    id: `dead-after-crash/${digit}`,
    class: "dead-after-crash",
    severity: "critical",
    subject: { type: "sandbox", sandboxId: sandboxId(digit.repeat(64)) },
    summary: "it died with the node",
    evidence: [{ source: "cri", fact: `${digit} holds no container` }],
    blocks: [],
    treatment: { automatic: true, reversible: false, steps: ["Remove it."] },
    cure: [],
  };
}

function planOf(...digits: readonly string[]): Plan {
  const actions = digits.map((digit) => ({
    finding: finding(digit),
    rank: "rest" as const,
    steps: [{ kind: "remove-sandbox" as const, sandboxId: sandboxId(digit.repeat(64)) }],
    reason: { code: "no-container", text: "it holds no container" } as const,
    lane: digit,
  }));
  return { actions, leftAlone: [] };
}

const CONTEXT: PlanContext = { view: viewOf(snapshotOf(), AT_ONCE), problems: [], where: "edge-7" };

describe("plan as a table", () => {
  test("has the columns of scan with the steps that will run, and the reason", () => {
    expect(renderPlan(planOf("a", "b"), CONTEXT, OPTIONS)).toBe(`\
Plan: heal 2 ghosts on edge-7
SEV   WHAT           CLASS             AGE  BLOCKS  ACTION
crit  aaaaaaaaaaaaa  dead-after-crash  -    -       remove
crit  bbbbbbbbbbbbb  dead-after-crash  -    -       remove
dead-after-crash (2): save its logs and remove it through the runtime, then check that its network
  is released. Reason: it holds no container
`);
  });

  test("leaks whose reasons differ only in their names are one line, under what they have in common", () => {
    const { actions, leftAlone } = planOf("a", "b", "c");
    const leaks = actions.map((action, index) => {
      const summary = `10.88.0.${index} is leased to a sandbox that no longer exists`;
      return { ...action, finding: { ...action.finding, summary }, reason: { ...action.reason, text: summary } };
    });

    const lines = renderPlan({ actions: leaks, leftAlone }, CONTEXT, OPTIONS).split("\n").slice(5, -1);

    expect(lines.join(" ")).toContain("dead-after-crash (3): ");
    expect(lines.join(" ")).toContain("Reason: Sandbox that died with the node");
    expect(lines).toHaveLength(2);
  });

  test("shows the evidence with -v", () => {
    expect(renderPlan(planOf("a", "b"), CONTEXT, OPTIONS)).not.toContain("holds no container\n    cri");
    const verbose = renderPlan(planOf("a", "b"), CONTEXT, { ...OPTIONS, verbose: true });

    for (const digit of ["a", "b"]) expect(verbose).toContain(`cri: ${digit} holds no container`);
  });

  test("is added to the findings of a scan, with the reason why others are skipped", () => {
    const { view } = CONTEXT;
    const left = {
      finding: finding("b"),
      reason: { code: "opted-out", text: "it is opted out by unghost.dev/ignore" },
    } as const;
    const report = {
      ...buildReport(view.snapshot, diagnose(view.snapshot, AT_ONCE)),
      findings: ["a", "b", "c"].map((digit) => reportedFinding(finding(digit), view)),
    };

    const { findings } = withPlan(report, { ...planOf("a"), leftAlone: [left] });

    expect(findings.map(({ plan }) => plan)).toEqual([
      {
        steps: ["save its logs and remove it through the runtime", "check that its network is released"],
        changes: [
          { step: "save its logs and remove it through the runtime", undo: false, ifLeft: false },
          { step: "check that its network is released", undo: false, ifLeft: false },
        ],
        reason: "it holds no container",
        code: "no-container",
      },
      { steps: [], changes: [], reason: "it is opted out by unghost.dev/ignore", code: "opted-out" },
      undefined,
    ]);
  });

  test("ends with the sources that could not be read", () => {
    const problems = [{ source: "kubernetes", problem: "no answer", next: "start it" }];

    expect(renderPlan(planOf(), { ...CONTEXT, problems }, OPTIONS)).toBe(
      "Plan: nothing to heal on edge-7\nCould not read\n  kubernetes: no answer. Start it.\n",
    );
  });
});
