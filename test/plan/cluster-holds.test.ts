import { expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { Holds } from "../../src/node/types/snapshot.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { DEFAULT_CAP, type HealPolicy } from "../../src/plan/policy.ts";
import {
  AT_ONCE,
  containerOf,
  LOST,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const POLICY: HealPolicy = { ...AT_ONCE, allDead: false, cap: DEFAULT_CAP };
const DEAD = sandboxOf("a");

/** A sandbox with a corrupt cache, and a hung creation. */
function planWith(holds: Partial<Holds>, ignored = false) {
  const { namespace, name, uid } = DEAD.pod;
  const snapshot = snapshotOf(
    {
      sandboxes: [DEAD],
      containers: [containerOf("a", { exit: LOST })],
      results: [resultOf("a", "empty")],
      plugins: [pluginFor("b", "ADD", 1000)],
      records: [recordOf("a"), recordOf("b")],
    },
    {
      kubernetes: {
        source: "api",
        pods: [{ namespace, name, uid, ignored }],
        holds: { paused: false, node: false, namespaces: [], ...holds },
      },
    },
  );
  return planHealing(diagnose(snapshot, POLICY), POLICY);
}

test.each<[string, Partial<Holds>, boolean, number]>([
  ["no annotation is set", {}, false, 2],
  ["the node is paused", { paused: true }, false, 0],
  ["the node is ignored", { node: true }, false, 0],
  ["the pods' namespace is ignored", { namespaces: ["default"] }, false, 0],
  ["one pod is ignored", {}, true, 1],
])("%s", (_what, holds, ignored, actions) => {
  expect(planWith(holds, ignored).actions).toHaveLength(actions);
});

test("plans no action on a paused node, with the reason paused", () => {
  const { leftAlone } = planWith({ paused: true });

  expect(leftAlone.map(({ reason }) => reason.code)).toEqual(["paused", "paused"]);
});
