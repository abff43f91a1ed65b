import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/classes/finding.ts";
import type { Plan } from "../../src/plan/plan.ts";
import { renderPlan } from "../../src/report/plan.ts";
import { sandboxId } from "../../src/snapshot/ids.ts";

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
    reason: { code: "no-container" } as const,
    lane: digit,
  }));
  return { actions, leftAlone: [] };
}

describe("the plan in words", () => {
  test("shows what is known of one as what is known of one", () => {
    const brief = renderPlan(planOf("a", "b"), [], OPTIONS);
    const verbose = renderPlan(planOf("a", "b"), [], { ...OPTIONS, verbose: true });

    expect(brief).toContain("    Of the first:\n    cri: a holds no container\n");
    expect(brief).not.toContain("b holds no container");
    expect(verbose).toContain("b holds no container");
    expect(verbose).not.toContain("Of the first");
    expect(renderPlan(planOf("a"), [], OPTIONS)).not.toContain("Of the first");
  });

  test("ends with what could not be read", () => {
    const problems = [{ source: "kubernetes", problem: "nobody answers", next: "start it" }];

    expect(renderPlan(planOf(), problems, OPTIONS)).toBe(
      "Plan: 0 actions, 0 left alone\n\nCould not read\n  kubernetes: nobody answers. Start it.\n",
    );
  });
});
