import { parse } from "valibot";
import { expect, test } from "vitest";
import { type PlannedAction, planHealing } from "../../src/plan/plan.ts";
import { withHealing } from "../../src/report/build.ts";
import { NodeReportSchema } from "../../src/report/node-report.ts";
import { planReport } from "../../src/report/plan.ts";
import { diagnosed } from "../support/diagnosed.ts";
import { HEALTHY } from "../support/node-report.ts";
import {
  AT_ONCE,
  containerOf,
  FINISHED,
  idOf,
  recordOf,
  resultOf,
  sandboxOf,
  shimOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const PARTS = {
  sandboxes: [sandboxOf("a"), sandboxOf("b"), sandboxOf("c"), sandboxOf("d")],
  records: [recordOf("a"), recordOf("b"), recordOf("c"), recordOf("d")],
  containers: [containerOf("a", { exit: FINISHED })],
  shims: [shimOf("b")],
  results: [resultOf("c", "empty"), resultOf("d", "empty")],
};

test("the report has a stable code beside the reason of every kept, skipped or refused item", () => {
  const diagnosis = diagnosed(PARTS);
  const plan = planHealing(diagnosis, { ...AT_ONCE, allDead: false, cap: 1 });

  const report = parse(NodeReportSchema, planReport({ snapshot: snapshotOf(PARTS), diagnosis, plan }));

  expect(report.kept.map(({ sandboxId, code }) => [sandboxId, code])).toEqual([
    [idOf("a"), "containers-finished"],
    [idOf("b"), "alive"],
  ]);
  expect(report.kept.map(({ reason }) => reason)).toEqual([
    "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them",
    "not dead: its shim is alive (pid 700)",
  ]);
  expect(report.actions?.map(({ outcome, code }) => [outcome, code])).toEqual([
    ["skipped", "dry-run"],
    ["skipped", "over-cap"],
  ]);
});

test("the code of a refused action is in the report", () => {
  const { findings } = diagnosed(PARTS);
  const [finding] = findings;
  if (finding === undefined) throw new Error("nothing was found");
  const action: PlannedAction = {
    finding,
    rank: "rest",
    steps: [],
    reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
    lane: "x",
  };

  const refused = { action, outcome: "refused", reason: "it is Ready", code: "not-dead", seconds: 0 } as const;

  expect(parse(NodeReportSchema, withHealing(HEALTHY, [refused])).actions).toMatchObject([
    { outcome: "refused", reason: "it is Ready", code: "not-dead" },
  ]);
});
