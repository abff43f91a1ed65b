import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import type { Verdict } from "../../src/evidence/finding.ts";
import type { PodCreation } from "../../src/evidence/pending.ts";
import { diagnosed } from "../support/diagnosed.ts";
import {
  ago,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  sandboxOf,
  snapshotOf,
  THICK_MULTUS,
} from "../support/snapshot-builder.ts";

const HANGING = ["a", "b", "c"];
const createdAt = (secondsAgo: number) => BigInt(ago(secondsAgo).getTime()) * 1_000_000n;

/** Creations of this age, about which nothing is reported. */
function hanging(ageSeconds: number, more: NodeParts = {}): NodeParts {
  return {
    ...more,
    records: [
      ...HANGING.map((digit) => ({ ...recordOf(digit, { hasCniResult: false }), createdAt: ago(ageSeconds) })),
      ...(more.records ?? []),
    ],
    plugins: HANGING.map((digit, index) => pluginFor(digit, "ADD", ageSeconds, 500 + index)),
  };
}

const ready = (secondsAgo: number): NodeParts => ({
  sandboxes: [sandboxOf("d", { state: "ready", createdAt: createdAt(secondsAgo) })],
});

describe("whether the node can create pods, while every creation hangs and nothing is reported", () => {
  test.each<readonly [string, NodeParts, PodCreation["able"], Verdict]>([
    ["for a moment", hanging(5, ready(600)), "yes", "healthy"],
    ["for half a minute", hanging(30, ready(600)), "unknown", "healthy"],
    ["for more than a minute", hanging(70, ready(600)), "no", "degraded"],
    ["for more than ten minutes, when each is a finding", hanging(700, ready(3000)), "no", "ghosts"],
    ["and no creation ever succeeded", hanging(70), "no", "degraded"],
    ["and another creation has succeeded meanwhile", hanging(70, ready(20)), "yes", "healthy"],
    [
      "and only a pod of the host's network was created meanwhile",
      hanging(70, { ...ready(20), records: [recordOf("d", { hostNetwork: true })] }),
      "no",
      "degraded",
    ],
  ])("%s", (_, parts, able, verdict) => {
    const { podCreation, ...found } = diagnosed(parts, PATIENT);

    expect([podCreation.able, found.verdict]).toEqual([able, verdict]);
  });

  test("is unknown in the first minutes of a runtime, whose network starts with it", () => {
    const snapshot = snapshotOf(hanging(70));
    const process = { pid: 1, startedSecondsAfterBoot: 3600 - 90 };
    const { podCreation, verdict } = diagnose({ ...snapshot, runtime: { ...snapshot.runtime, process } }, PATIENT);

    expect([podCreation.able, verdict]).toEqual(["unknown", "healthy"]);
  });

  test("lists the pods that wait, with what they wait for", () => {
    const { pending, podCreation } = diagnosed(hanging(70, ready(600)), PATIENT);

    expect(pending.map(({ reason }) => reason)).toEqual(HANGING.map(() => "creation-stalled"));
    expect(podCreation.blockedPods.map(({ name }) => name)).toEqual(["pod-a", "pod-b", "pod-c"]);
  });

  test("is no, once a daemon is found that every creation waits for", () => {
    const multusDaemon = { socket: "/run/multus/multus.sock", state: "dead" } as const;
    const parts = { ...ready(600), conf: THICK_MULTUS };

    expect(diagnose(snapshotOf(parts, { multusDaemon }), PATIENT).podCreation.able).toBe("no");
  });
});

test("the last success does not go back when the newest pod ends", () => {
  const sandboxes = [
    sandboxOf("c", { state: "ready", createdAt: createdAt(600) }),
    sandboxOf("d", { state: "notReady", createdAt: createdAt(60) }),
    sandboxOf("e", { state: "notReady", createdAt: -6_795_364_578_871_345_152n }),
  ];

  expect(diagnosed({ sandboxes }, PATIENT).podCreation.lastSuccess).toMatchObject({ at: ago(60) });
});
