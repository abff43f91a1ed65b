import { describe, expect, test } from "vitest";
import { clockStepSandboxAttemptReuse } from "../../src/classes/clock-step-sandbox-attempt-reuse.ts";
import { libcniResultCacheCorrupt } from "../../src/classes/corrupt-caches.ts";
import { deadAfterCrash } from "../../src/classes/dead-after-crash.ts";
import type { Candidate } from "../../src/evidence/candidates.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import type { HealPolicy } from "../../src/plan/policy.ts";
import { containerdLine } from "../support/log-lines.ts";
import {
  containerOf,
  delErrorLine,
  FINISHED,
  LOST,
  type NodeParts,
  recordOf,
  sandboxOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

import { A, CURE, candidate, decided, FINDING, lost, planFor, type Situation } from "./one-finding.ts";

describe("ladder facts of a sandbox", () => {
  const KNOWN = { pods: ["a"], kubeletStarted: 10 };

  test.each<readonly [string, NodeParts, readonly [string, string]]>([
    ["it has a container", { ...KNOWN, containers: lost("a") }, ["stop-sandbox", "network-releasable"]],
    ["it has no container", KNOWN, ["remove-sandbox", "no-container"]],
    [
      "its kubelet has just started",
      { pods: ["a"], kubeletStarted: UPTIME_SECONDS - 1, containers: lost("a") },
      ["left", "kubelet-recovering"],
    ],
    [
      "a container of it was lost, and its pod is unknown",
      { containers: lost("a") },
      ["remove-sandbox", "died-with-node"],
    ],
    [
      "one of two containers was lost",
      { containers: [...lost("a"), containerOf("a", { exit: FINISHED })] },
      ["remove-sandbox", "died-with-node"],
    ],
    [
      "it was created before the boot",
      {
        sandboxes: [sandboxOf("a", { createdSecondsAgo: UPTIME_SECONDS + 60 })],
        containers: [containerOf("a", { exit: FINISHED })],
      },
      ["remove-sandbox", "died-with-node"],
    ],
    [
      "it was created after the boot, and its containers ended",
      { containers: [containerOf("a", { exit: FINISHED })] },
      ["stop-sandbox", "network-releasable"],
    ],
  ])("%s", (_, parts, wanted) => {
    expect(decided({}, { parts })).toEqual(wanted);
  });

  test.each([
    [true, ["left", "kubelet-follows"]],
    [false, ["remove-sandbox", "no-container"]],
  ])("a kubelet starts next: %s", (kubeletFollows, wanted) => {
    expect(decided({}, { parts: { pods: ["a"] }, policy: { kubeletFollows } })).toEqual(wanted);
  });

  test.each([
    ["its pod ended orderly", FINISHED, ["left", "kept-on-purpose"]],
    ["its containers were lost", LOST, ["remove-sandbox", "attempt-reused"]],
  ])("after a clock step it is kept only when %s", (_, exit, wanted) => {
    const parts = { ...KNOWN, containers: [containerOf("a", { exit })] };
    const dead = [
      candidate("a", {
        code: "containers-finished",
        text: "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them",
      }),
    ];
    expect(decided({ class: clockStepSandboxAttemptReuse.id }, { parts, dead })).toEqual(wanted);
  });

  test("a sandbox kept for another reason than a clock step stays kept, however it ended", () => {
    const parts = { ...KNOWN, containers: lost("a") };
    expect(
      decided(
        {},
        {
          parts,
          dead: [
            candidate("a", {
              code: "pod-known",
              text: "Kubernetes still knows the pod, and its network is released; kubectl logs still reads its containers",
            }),
          ],
        },
      ),
    ).toEqual(["left", "kept-on-purpose"]);
  });

  const STATIC = { annotations: { "kubernetes.io/config.source": "file" } };
  const system = { ...A, pod: { ...A.pod, namespace: "kube-system" } };

  test.each<readonly [string, NodeParts, string]>([
    ["a static pod", { sandboxes: [sandboxOf("a", STATIC)] }, "control-plane-unproven"],
    [
      "a system pod in the host network",
      { sandboxes: [system], records: [recordOf("a", { hostNetwork: true })] },
      "control-plane-unproven",
    ],
    ["a system pod with its own network", { sandboxes: [system] }, "no-container"],
    ["a system pod without a record", { sandboxes: [system], records: [] }, "no-container"],
    ["another pod in the host network", { records: [recordOf("a", { hostNetwork: true })] }, "no-container"],
  ])("is part of the control plane: %s", (_, parts, code) => {
    expect(decided({}, { parts })[1]).toBe(code);
  });

  describe("its removal fails", () => {
    const dead = [
      candidate("a", {
        code: "pod-known",
        text: "Kubernetes still knows the pod, and its network is released; kubectl logs still reads its containers",
      }),
    ];
    const failing = { ...KNOWN, containers: lost("a"), logLines: [delErrorLine("a", "no")] };

    test.each<readonly [string, string, NodeParts, readonly [string, string]]>([
      [
        "reported, of a class of failing removals",
        libcniResultCacheCorrupt.id,
        failing,
        ["stop-sandbox", "kept-with-network-held"],
      ],
      ["reported, of no class of the catalogue", "unheard-of", failing, ["left", "kept-on-purpose"]],
      ["reported, of another class", deadAfterCrash.id, failing, ["left", "kept-on-purpose"]],
      [
        "reported of another sandbox",
        libcniResultCacheCorrupt.id,
        { ...failing, logLines: [delErrorLine("b", "no")] },
        ["left", "kept-on-purpose"],
      ],
      ["not reported", libcniResultCacheCorrupt.id, { ...failing, logLines: [] }, ["left", "kept-on-purpose"]],
      [
        "its network is reported as released",
        libcniResultCacheCorrupt.id,
        { ...failing, logLines: [containerdLine(30, "info", `TearDown network for sandbox "${A.id}" successfully`)] },
        ["left", "kept-on-purpose"],
      ],
    ])("%s", (_, classId, parts, wanted) => {
      expect(decided({ class: classId }, { parts, dead })).toEqual(wanted);
    });
  });
});

describe("a finding is skipped", () => {
  const holds = (more: object): Partial<Snapshot> => ({
    kubernetes: { source: "api", pods: [], holds: { paused: false, node: false, namespaces: [], ...more } },
  });
  const SENTENCES: Readonly<Record<string, string>> = {
    paused: "the node is paused by unghost.dev/paused",
    "opted-out": "it is opted out by unghost.dev/ignore",
    untreatable: "no way",
    "nothing-to-end": "nothing was found that could be ended: restart the runtime manually to clear it",
  };
  const ignored = { ...recordOf("a"), labels: { "unghost.dev/ignore": "true" } };

  test.each<readonly [string, Partial<Finding>, Situation, string]>([
    ["the node is paused", {}, { sources: holds({ paused: true, node: true }) }, "paused"],
    ["the node is opted out", {}, { sources: holds({ node: true }) }, "opted-out"],
    [
      "the node is opted out, and it is about a file",
      { subject: { type: "file", path: "/x" }, cure: [CURE] },
      { sources: holds({ node: true }) },
      "opted-out",
    ],
    ["its namespace is opted out", { cure: [CURE] }, { sources: holds({ namespaces: ["default"] }) }, "opted-out"],
    ["its record has the annotation", { cure: [CURE] }, { parts: { sandboxes: [], records: [ignored] } }, "opted-out"],
    ["no step is possible here", { untreatable: "no way", cure: [CURE] }, {}, "untreatable"],
    ["there is no process to end", {}, { parts: { sandboxes: [] } }, "nothing-to-end"],
    ["it is about the node, without a remedy", { subject: { type: "node" } }, {}, "nothing-to-end"],
    [
      "it is about a file of a listed sandbox, without a remedy",
      { subject: { type: "file", path: "/x", sandboxId: A.id } },
      {},
      "nothing-to-end",
    ],
  ])("when %s", (_, finding, situation, code) => {
    const { actions, leftAlone } = planFor(finding, situation);
    expect([actions, leftAlone.map(({ reason }) => reason)]).toEqual([[], [{ code, text: SENTENCES[code] }]]);
  });

  test("with the reason why no step is possible", () => {
    expect(planFor({ untreatable: "no way" }).leftAlone[0]?.reason).toEqual({ code: "untreatable", text: "no way" });
  });

  const attended = {
    treatment: { automatic: false, reversible: false, steps: ["Check."] },
    cure: [CURE],
    subject: { type: "node" },
  } as const;

  test.each<readonly [string, Partial<Finding>, Partial<HealPolicy>, readonly [string, string]]>([
    ["there is no consent", attended, {}, ["left", "needs-consent"]],
    ["the policy consents", attended, { consented: new Set([FINDING.class]) }, ["cure", "cure"]],
    ["the policy consents to another class", attended, { consented: new Set(["other"]) }, ["left", "needs-consent"]],
    ["a filter names only this class", attended, { only: [FINDING.class] }, ["left", "needs-consent"]],
    [
      "there is no action to allow",
      { ...attended, cure: [] },
      { consented: new Set([FINDING.class]) },
      ["left", "needs-consent"],
    ],
  ])("until consent is given: %s", (_, finding, policy, wanted) => {
    expect(decided(finding, { policy })).toEqual(wanted);
  });

  test.each<readonly [string, readonly Step[], string]>([
    [
      "with the class that may be allowed",
      [CURE],
      "manual (to allow it: unghost heal --allow dead-after-crash, or agent.classes.dead-after-crash: heal): Check.",
    ],
    ["without a class when consent would start no action", [], "manual: Check."],
  ])("until consent is given, %s", (_, cure, text) => {
    const { leftAlone } = planFor({ ...attended, cure });
    expect(leftAlone[0]?.reason).toEqual({ code: "needs-consent", text });
  });
});

describe("a sandbox that is not proven dead", () => {
  const dead: readonly Candidate[] = [];
  const ending: Step = { kind: "end-process", pid: 7, startedSecondsAfterBoot: 1, sandboxId: A.id };

  test("is skipped", () => {
    expect(decided({}, { dead })).toEqual(["left", "not-proven-dead"]);
    expect(decided({}, { dead, policy: { allDead: true } })).toEqual(["left", "not-proven-dead"]);
  });

  test("is not touched when its hung process is ended", () => {
    const { actions } = planFor({ cure: [ending] }, { dead });
    expect(actions).toMatchObject([{ steps: [ending], reason: { code: "cure" } }]);
  });

  test("keeps its hung process when it is opted out", () => {
    const sandboxes = [sandboxOf("a", { labels: { "unghost.dev/ignore": "true" } })];
    expect(decided({ cure: [ending] }, { dead, parts: { sandboxes } })).toEqual(["left", "opted-out"]);
  });
});
