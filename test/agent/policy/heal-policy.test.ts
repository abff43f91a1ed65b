import { describe, expect, test } from "vitest";
import { healPolicyOf } from "../../../src/agent/agent.ts";
import type { AgentPolicy, ClassMode } from "../../../src/agent/policy/agent-policy.ts";
import { policyFrom } from "../../../src/cli/settings/policy.ts";
import type { Finding } from "../../../src/evidence/finding.ts";
import { planHealing } from "../../../src/plan/plan.ts";
import { diagnosed, named } from "../../support/diagnosed.ts";
import { AT_ONCE, idOf, shimOf } from "../../support/snapshot-builder.ts";

function withMode(classId: string, mode: ClassMode): AgentPolicy {
  const policy = policyFrom({});
  const before = policy.classes.get(classId);
  if (before === undefined) throw new Error(`no class ${classId}`);
  return { ...policy, classes: new Map([...policy.classes, [classId, { ...before, mode }]]) };
}

const LEAKED_SHIM = { shims: [shimOf("a")] };

function planFor(mode: ClassMode) {
  const policy = healPolicyOf(withMode("shim-leak", mode), AT_ONCE);
  const diagnosis = diagnosed(LEAKED_SHIM, policy);
  return { diagnosis, plan: planHealing(diagnosis, policy) };
}

describe("a manual class", () => {
  test("is planned once the policy consents to it", () => {
    expect(planFor("heal").plan.actions.map(({ steps }) => steps)).toMatchObject([[{ kind: "end-process" }]]);
  });

  test("is shown and not planned in observe mode", () => {
    const { diagnosis, plan } = planFor("observe");

    expect(named(diagnosis)).toHaveLength(1);
    expect([plan.actions, plan.leftAlone[0]?.reason.code]).toEqual([[], "needs-consent"]);
  });

  test("is not diagnosed when it is off", () => {
    expect(named(planFor("off").diagnosis)).toEqual([]);
  });

  test("stays manual without a step to run, whatever the policy consents to", () => {
    const finding: Finding = {
      id: "cni-not-initialized/node",
      class: "cni-not-initialized",
      severity: "critical",
      subject: { type: "sandbox", sandboxId: idOf("a") },
      summary: "no network",
      evidence: [],
      blocks: [],
      treatment: { automatic: false, reversible: false, steps: ["Restart the add-on."] },
      cure: [],
    };
    const policy = healPolicyOf(withMode(finding.class, "heal"), AT_ONCE);

    const { actions } = planHealing({ ...diagnosed({}, policy), findings: [finding] }, policy);

    expect(actions).toEqual([]);
  });
});

test("automatic classes need no consent, and skipped classes stay skipped", () => {
  const policy = healPolicyOf(withMode("pod-gone", "off"), { ...AT_ONCE, skip: ["shim-leak"] });

  expect(policy.consented?.size).toBe(0);
  expect(policy.skip).toEqual(["shim-leak", "pod-gone"]);
});

test.each([
  { recreatePods: true, mode: "heal", consented: true },
  { recreatePods: true, mode: "observe", consented: false },
  { recreatePods: false, mode: "heal", consented: false },
] as const)(
  "re-creating pods needs its own setting: $recreatePods, mode $mode",
  ({ recreatePods, mode, consented }) => {
    const id = "sandbox-name-held-by-inflight-run";

    const policy = healPolicyOf({ ...withMode(id, mode), recreatePods }, AT_ONCE);

    expect(policy.consented?.has(id)).toBe(consented);
  },
);
