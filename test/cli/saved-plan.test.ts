import { writeFileSync } from "node:fs";
import * as v from "valibot";
import { describe, expect, onTestFinished, test } from "vitest";
import { healPolicyOf } from "../../src/agent/agent.ts";
import { changeSince, readSavedPlan } from "../../src/cli/saved-plan.ts";
import { policyFrom } from "../../src/cli/settings/policy.ts";
import { scanNode } from "../../src/plan/scan.ts";
import { NodeReportSchema } from "../../src/report/node-report.ts";
import { planReport } from "../../src/report/plan.ts";
import { shownDigest } from "../../src/report/shown-plan.ts";
import { WITH_GHOST } from "../agent/node-with-ghost.ts";
import { AT_ONCE, snapshotOf } from "../support/snapshot-builder.ts";
import { tempDir } from "../support/temp-dir.ts";

async function planned() {
  const now = await scanNode({
    observe: () => Promise.resolve(snapshotOf(WITH_GHOST, {})),
    policy: () => healPolicyOf(policyFrom({}), AT_ONCE),
  });
  expect(now.plan.actions).toHaveLength(1);
  return { now, report: planReport(now) };
}

function saved(text: string, node: string) {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  writeFileSync(dir.join("plan.json"), text);
  return readSavedPlan(dir.join("plan.json"), node);
}

describe("a saved plan", () => {
  test("is the plan of now, as a file, and by each of its digests", async () => {
    const { now, report } = await planned();
    const text = JSON.stringify(report);
    const read = v.parse(NodeReportSchema, JSON.parse(text));

    expect(shownDigest(read)).toBe(shownDigest(report));
    for (const plan of [
      saved(text, report.node),
      ...[report.planDigest ?? "", shownDigest(read)].map((digest) => readSavedPlan(digest, "n")),
    ])
      expect(changeSince(plan, now)).toBeUndefined();
  });

  test("is another one when it was edited, or has another digest", async () => {
    const { now, report } = await planned();
    const [action] = report.actions ?? [];
    const [finding] = report.findings;
    const edited = [
      { ...report, actions: [{ ...action, changes: [] }] },
      { ...report, findings: [{ ...finding, subject: { ...finding?.subject, pod: undefined, name: "other" } }] },
      { ...report, planDigest: `sha256:${"0".repeat(64)}` },
    ];

    for (const one of edited)
      expect(changeSince(saved(JSON.stringify(one), report.node), now)).toMatch(/or the file was edited\.$/);
    expect(changeSince(readSavedPlan(`sha256:${"0".repeat(64)}`, "n"), now)).toMatch(/since the plan was saved\.$/);
  });
});
