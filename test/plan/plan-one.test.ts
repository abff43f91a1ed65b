import { describe, expect, test } from "vitest";
import { clockStepSandboxAttemptReuse } from "../../src/classes/creation-blocked/clock-step-sandbox-attempt-reuse.ts";
import { deadAfterCrash } from "../../src/classes/left-behind/dead-after-crash.ts";
import { retainedNotready } from "../../src/classes/not-failures/retained-notready.ts";
import { libcniResultCacheCorrupt } from "../../src/classes/removal-fails/libcni-result-cache-corrupt.ts";
import type { Diagnosis } from "../../src/diagnose/diagnose.ts";
import type { Candidate } from "../../src/evidence/candidates.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { unfinishedFindings } from "../../src/plan/obstacles.ts";
import { type Plan, planHealing } from "../../src/plan/plan.ts";
import type { HealPolicy } from "../../src/plan/policy.ts";
import type { Snapshot } from "../../src/snapshot/types/snapshot.ts";
import { containerdLine } from "../support/log-lines.ts";
import {
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  LOST,
  type NodeParts,
  PATIENT,
  recordOf,
  sandboxOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

const POLICY: HealPolicy = { ...PATIENT, allDead: false, cap: 100 };
const A = sandboxOf("a");
const CURE: Step = { kind: "quarantine-file", path: "/var/lib/cni/x", health: "corrupt" };
const KICK: Step = { kind: "kick-pod", namespace: "default", name: "b", uid: "b", node: "n" };

const FINDING: Finding = {
  id: "dead-after-crash/a",
  class: deadAfterCrash.id,
  severity: "warning",
  subject: { type: "sandbox", sandboxId: A.id, pod: A.pod },
  summary: "it is dead",
  evidence: [],
  blocks: [],
  treatment: { automatic: true, reversible: false, steps: [] },
  cure: [],
};

interface Situation {
  readonly parts?: NodeParts;
  readonly sources?: Partial<Snapshot>;
  readonly policy?: Partial<HealPolicy>;
  readonly dead?: readonly Candidate[];
}

function diagnosis(findings: readonly Finding[], { parts, sources, dead = DEAD }: Situation): Diagnosis {
  const whole = { sandboxes: [A], records: [recordOf("a")], ...parts };
  return {
    verdict: "ghosts",
    findings,
    pending: [],
    podCreation: { able: "unknown", blockedPods: [] },
    kept: [],
    advice: [],
    dead,
    view: viewOf(snapshotOf(whole, sources), PATIENT),
  };
}

function planFor(finding: Partial<Finding>, situation: Situation = {}): Plan {
  return planHealing(diagnosis([{ ...FINDING, ...finding }], situation), { ...POLICY, ...situation.policy });
}

/** How far it goes and why: the last step that the ladder chose, or nothing. */
function decided(finding: Partial<Finding>, situation: Situation = {}): readonly [string, string] {
  const { actions, leftAlone } = planFor(finding, situation);
  const [action] = actions;
  if (action === undefined) return ["left", leftAlone[0]?.reason.code ?? "not even named"];
  return [action.steps.find(({ kind }) => kind.endsWith("-sandbox"))?.kind ?? "cure", action.reason.code];
}

function candidate(digit: string, retained?: Candidate["retained"]): Candidate {
  const sandbox = sandboxOf(digit);
  const about = { containers: [], results: [], leases: [], plugins: [], shims: [], pids: [] };
  return { sandbox, about, evidence: [], ...(retained === undefined ? {} : { retained }) };
}

const DEAD = [candidate("a")];

const lost = (digit: string) => [containerOf(digit, { exit: LOST })];

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
    ["its pod ended orderly", FINISHED, ["left", "kept-on-purpose"]],
    ["its containers were lost", LOST, ["remove-sandbox", "attempt-reused"]],
  ])("after a clock step it is kept only when %s", (_, exit, wanted) => {
    const parts = { ...KNOWN, containers: [containerOf("a", { exit })] };
    const dead = [candidate("a", { code: "containers-finished" })];
    expect(decided({ class: clockStepSandboxAttemptReuse.id }, { parts, dead })).toEqual(wanted);
  });

  test("a sandbox kept for another reason than a clock step stays kept, however it ended", () => {
    const parts = { ...KNOWN, containers: lost("a") };
    expect(decided({}, { parts, dead: [candidate("a", { code: "pod-known" })] })).toEqual(["left", "kept-on-purpose"]);
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
    const dead = [candidate("a", { code: "pod-known" })];
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
    expect(decided(finding, situation)).toEqual(["left", code]);
  });

  test("with the reason why no step is possible", () => {
    expect(planFor({ untreatable: "no way" }).leftAlone[0]?.reason).toEqual({ code: "untreatable", why: "no way" });
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
    ["the operator names only this class", attended, { only: [FINDING.class] }, ["cure", "cure"]],
    ["the operator names another class", attended, { only: ["other"] }, ["left", "needs-consent"]],
    ["the operator names several", attended, { only: [FINDING.class, "other"] }, ["left", "needs-consent"]],
    ["there is no action to allow", { ...attended, cure: [] }, { only: [FINDING.class] }, ["left", "needs-consent"]],
  ])("until consent is given: %s", (_, finding, policy, wanted) => {
    expect(decided(finding, { policy })).toEqual(wanted);
  });

  test.each<readonly [string, readonly Step[], object]>([
    ["with the class that may be allowed", [CURE], { allow: FINDING.class }],
    ["without a class when consent would start no action", [], {}],
  ])("until consent is given, %s", (_, cure, allow) => {
    const { leftAlone } = planFor({ ...attended, cure });
    expect(leftAlone[0]?.reason).toEqual({ code: "needs-consent", steps: ["Check."], ...allow });
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

describe("an action", () => {
  test("of a subject that is not a listed sandbox is its remedy, with the finding's text as the reason", () => {
    const { actions } = planFor({ subject: { type: "file", path: "/x" }, cure: [CURE] });
    expect(actions).toMatchObject([{ rank: "rest", steps: [CURE], reason: { code: "cure", summary: "it is dead" } }]);
  });

  test.each<readonly [string, Partial<Finding>, string]>([
    ["a sandbox", {}, A.id],
    ["a file of a sandbox", { subject: { type: "file", path: "/x", sandboxId: A.id }, cure: [CURE] }, A.id],
    ["anything else", { subject: { type: "file", path: "/x" }, cure: [CURE] }, FINDING.id],
    ["attempts after a clock step", { class: clockStepSandboxAttemptReuse.id }, A.pod.uid],
    [
      "a sandbox of an unknown pod after a clock step",
      { class: clockStepSandboxAttemptReuse.id, subject: { type: "sandbox", sandboxId: A.id } },
      A.id,
    ],
    [
      "a node after a clock step",
      { class: clockStepSandboxAttemptReuse.id, subject: { type: "node" }, cure: [CURE] },
      FINDING.id,
    ],
  ])("of %s has its own lane", (_, finding, lane) => {
    expect(planFor(finding).actions.map((action) => action.lane)).toEqual([lane]);
  });

  test("of a pod that blocks a CSI driver ranks like its plugin, whatever its name", () => {
    expect(planFor({ missingSockets: ["/x.sock"] }).actions[0]?.rank).toBe("csi-node-plugin");
    expect(planFor({}).actions[0]?.rank).toBe("rest");
  });

  const alive = { parts: { pods: ["a"], kubeletStarted: 10 } };

  test.each<readonly [string, Partial<Finding>, Situation, readonly Step[] | undefined]>([
    ["a kubelet restarts its plugin", { followUps: [KICK] }, alive, [KICK]],
    ["no kubelet would", { followUps: [KICK] }, {}, undefined],
    ["--no-kick", { followUps: [KICK] }, { ...alive, policy: { noKick: true } }, undefined],
    ["there is no action", { followUps: [] }, alive, undefined],
    ["nothing reports it", {}, alive, undefined],
  ])("has follow-ups only when there are some: %s", (_, finding, situation, followUps) => {
    const [action] = planFor(finding, situation).actions;
    expect(action).toBeDefined();
    expect(action?.followUps).toEqual(followUps);
    expect(action !== undefined && "followUps" in action).toBe(followUps !== undefined);
  });
});

describe("dead sandboxes without a finding", () => {
  const explained: readonly Finding[] = [FINDING, { ...FINDING, subject: { type: "node" } }];
  const dead = [candidate("a"), candidate("b"), candidate("c", { code: "static-pod" })];
  const given = diagnosis(explained, { dead });

  test("are removed by --all-dead, with the reason why they were kept", () => {
    const sandboxes = ["a", "b", "c"].map((digit) => sandboxOf(digit));
    const whole = diagnosis(explained, { dead, parts: { sandboxes } });
    const { actions } = planHealing(whole, { ...POLICY, allDead: true });
    const swept = actions.map(({ finding }) => finding).filter((finding) => finding.class === retainedNotready.id);
    expect(swept).toMatchObject([
      {
        id: `${retainedNotready.id}/${idOf("b")}`,
        severity: "info",
        summary: expect.stringContaining("--all-dead"),
        evidence: [{ source: "cri", fact: expect.stringContaining("nothing shows that it is stuck") }],
        treatment: { automatic: true, reversible: false, steps: ["Save its logs.", "Remove it over CRI."] },
      },
      { id: `${retainedNotready.id}/${idOf("c")}`, evidence: [{ fact: expect.stringContaining("static pod") }] },
    ]);
  });

  test("are removed when an earlier run started it, unless they are kept on purpose", () => {
    const started = new Set(["a", "b", "c"].map(idOf));
    expect(unfinishedFindings(given, started)).toMatchObject([
      {
        id: `${deadAfterCrash.id}/${idOf("b")}`,
        class: deadAfterCrash.id,
        summary: expect.stringContaining("earlier run"),
        evidence: [{ source: "journal", fact: expect.stringContaining("never ended") }],
        treatment: { automatic: true },
      },
    ]);
    expect(unfinishedFindings(given, started)).toHaveLength(1);
    expect(unfinishedFindings(given, new Set([idOf("a")]))).toEqual([]);
    expect(unfinishedFindings(given, new Set())).toEqual([]);
  });
});
