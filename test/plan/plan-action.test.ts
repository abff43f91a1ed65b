import { describe, expect, test } from "vitest";
import { clockStepSandboxAttemptReuse } from "../../src/classes/clock-step-sandbox-attempt-reuse.ts";
import { deadAfterCrash } from "../../src/classes/dead-after-crash.ts";
import { classThatAdopts } from "../../src/classes/index.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import { unfinishedFindings } from "../../src/plan/obstacles.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { idOf, pluginFor, sandboxOf, snapshotOf, UPTIME_SECONDS } from "../support/snapshot-builder.ts";

import { A, CURE, candidate, diagnosis, FINDING, KICK, POLICY, planFor, type Situation } from "./one-finding.ts";

const RETAINED = classThatAdopts("all-dead");

describe("an action", () => {
  test("of a subject that is not a listed sandbox is its remedy, with the finding's text as the reason", () => {
    const { actions } = planFor({ subject: { type: "file", path: "/x" }, cure: [CURE] });
    expect(actions).toMatchObject([{ rank: "rest", steps: [CURE], reason: { code: "cure", text: "it is dead" } }]);
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

  test("first ends the oldest ADD and DEL of its sandbox that outlived the runtime, and no call of the runtime that runs", () => {
    const calls = [
      pluginFor("a", "ADD", 300, 501),
      pluginFor("a", "ADD", 200, 502),
      pluginFor("a", "DEL", 250, 503),
      pluginFor("a", "DEL", 50, 504),
    ];
    const process = { pid: 1, startedSecondsAfterBoot: UPTIME_SECONDS - 100 };
    const sources = { runtime: { ...snapshotOf().runtime, process } };

    const [action] = planFor({}, { parts: { plugins: calls }, sources }).actions;

    expect(action?.steps.filter(({ kind }) => kind === "end-process")).toEqual([
      { kind: "end-process", pid: 501, startedSecondsAfterBoot: UPTIME_SECONDS - 300, sandboxId: A.id },
      { kind: "end-process", pid: 503, startedSecondsAfterBoot: UPTIME_SECONDS - 250, sandboxId: A.id },
    ]);
    expect(action?.steps[0]?.kind).toBe("end-process");

    const [ofRunning] = planFor({}, { parts: { plugins: calls.slice(3) }, sources }).actions;
    expect(ofRunning?.steps.map(({ kind }) => kind)).not.toContain("end-process");
    expect(ofRunning?.steps.length).toBeGreaterThan(0);
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
  const dead = [
    candidate("a"),
    candidate("b"),
    candidate("c", { code: "static-pod", text: "a static pod: kubelet creates it again from its manifest" }),
  ];
  const given = diagnosis(explained, { dead });

  test("are removed by --all-dead, with the reason why they were kept", () => {
    const sandboxes = ["a", "b", "c"].map((digit) => sandboxOf(digit));
    const whole = diagnosis(explained, { dead, parts: { sandboxes } });
    const { actions } = planHealing(whole, { ...POLICY, allDead: true });
    const swept = actions.map(({ finding }) => finding).filter((finding) => finding.class === RETAINED.id);
    expect(swept).toMatchObject([
      {
        id: `${RETAINED.id}/${idOf("b")}`,
        severity: "info",
        summary: expect.stringContaining("--all-dead"),
        evidence: [{ source: "cri", fact: expect.stringContaining("nothing shows that it is stuck") }],
        treatment: { automatic: true, reversible: false, steps: ["Save its logs.", "Remove it over CRI."] },
      },
      { id: `${RETAINED.id}/${idOf("c")}`, evidence: [{ fact: expect.stringContaining("static pod") }] },
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
