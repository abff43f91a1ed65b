import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Kubernetes, PodEvent } from "../../src/node/types/snapshot.ts";
import { AT_ONCE, containerOf, LOST, recordOf, resultOf, sandboxOf, snapshotOf } from "../support/snapshot-builder.ts";

const EVENT: PodEvent = {
  namespace: "default",
  pod: "pod-a",
  reason: "FailedKillPod",
  message: "no\u001b[31m",
  count: 12,
};

function factsWith(events: readonly PodEvent[]): readonly string[] {
  const kubernetes: Kubernetes = {
    source: "api",
    pods: [{ namespace: "default", name: "pod-a", uid: podUid("a") }],
    holds: { paused: false, node: false, namespaces: [] },
    events,
  };
  const parts = {
    sandboxes: [sandboxOf("a")],
    records: [recordOf("a")],
    containers: [containerOf("a", { exit: LOST })],
    results: [resultOf("a", "empty")],
  };
  const { findings } = diagnose(snapshotOf(parts, { kubernetes }), AT_ONCE);
  return findings
    .flatMap(({ evidence }) => evidence.map(({ fact }) => fact))
    .filter((fact) => fact.startsWith("event"));
}

describe("events as evidence", () => {
  test("events of the pod are quoted, without control characters", () => {
    const [fact = ""] = factsWith([EVENT]);

    expect(fact).toMatch(/^event FailedKillPod, 12 times: no/);
    expect(fact).not.toContain("\u001b");
  });

  test("events of a pod of the same name elsewhere, or of other pods, are not quoted", () => {
    expect(
      factsWith([
        { ...EVENT, namespace: "other" },
        { ...EVENT, pod: "pod-b" },
      ]),
    ).toEqual([]);
  });

  test("at most two are quoted", () => {
    expect(
      factsWith(["FailedMount", "FailedAttachVolume", "FailedKillPod"].map((reason) => ({ ...EVENT, reason }))),
    ).toHaveLength(2);
  });
});
