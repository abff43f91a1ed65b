import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/evidence/finding.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Sandbox } from "../../src/node/types/runtime.ts";
import { type Plan, planHealing } from "../../src/plan/plan.ts";
import { DEFAULT_CAP, type HealPolicy } from "../../src/plan/policy.ts";
import { diagnosed } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  addressOf,
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  LOST,
  MULTUS,
  type NodeParts,
  pluginFor,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
  shimOf,
} from "../support/snapshot-builder.ts";

const POLICY: HealPolicy = { ...AT_ONCE, allDead: false, cap: DEFAULT_CAP };

function planFor(parts: NodeParts, policy: Partial<HealPolicy> = {}): Plan {
  const all = { ...POLICY, ...policy };
  return planHealing(diagnosed(parts, all), all);
}

function steps({ actions }: Plan): readonly string[] {
  return actions.map((action) => action.steps.map(({ kind }) => kind).join(", "));
}

function reasons({ leftAlone }: Plan): readonly string[] {
  return leftAlone.map(({ reason }) => reason.text);
}

/** A sandbox that died with the node: its container lost, its network held. */
function dead(digit: string, named: { namespace?: string; name?: string } = {}): Sandbox {
  const sandbox = sandboxOf(digit, { createdSecondsAgo: 7200 });
  return { ...sandbox, pod: { ...sandbox.pod, ...named } };
}

const ONE_DEAD = {
  sandboxes: [dead("a")],
  containers: [containerOf("a", { exit: LOST })],
  records: [recordOf("a")],
  results: [resultOf("a")],
  addresses: [addressOf("a", "10.88.0.2")],
} satisfies NodeParts;

describe("planHealing", () => {
  test("heals network agents first, then storage, then system pods, then the rest", () => {
    const sandboxes = [
      dead("a", { name: "web-0" }),
      dead("b", { namespace: "kube-system", name: "coredns-x" }),
      dead("c", { namespace: "longhorn-system", name: "longhorn-csi-plugin-x" }),
      dead("d", { namespace: "kube-flannel", name: "kube-flannel-ds-x" }),
    ];

    const plan = planFor({ sandboxes, results: ["a", "b", "c", "d"].map((digit) => resultOf(digit)) });

    expect(plan.actions.map(({ rank }) => rank)).toEqual(["cni-agent", "csi-node-plugin", "node-critical", "rest"]);
  });

  test("heals attempts that a clock step mixed up one after the other, the oldest first", () => {
    const attempt = (digit: string, number: number, createdSecondsAgo: number): Sandbox =>
      sandboxOf(digit, { uid: "one", attempt: number, createdSecondsAgo });
    const sandboxes = [attempt("c", 2, 900_000_000), attempt("b", 1, 800_000_000), attempt("a", 0, 60)];

    const { actions } = planFor({ sandboxes });

    expect(actions.map(({ finding }) => finding.subject)).toMatchObject([
      { sandboxId: idOf("b") },
      { sandboxId: idOf("c") },
    ]);
    expect(new Set(actions.map(({ lane }) => lane))).toEqual(new Set([podUid("one")]));
  });

  test("skips those attempts while a sandbox is dated after now", () => {
    const sandboxes = [
      sandboxOf("b", { uid: "one", attempt: 1, createdSecondsAgo: 60 }),
      sandboxOf("a", { uid: "one", attempt: 0, createdSecondsAgo: -86_400 }),
    ];

    expect(reasons(planFor({ sandboxes }))).toEqual([expect.stringContaining("set the clock")]);
  });

  test("never exceeds the cap in one run, and lists the rest as over the cap", () => {
    const digits = ["a", "b", "c"];
    const parts = { sandboxes: digits.map((digit) => dead(digit)), results: digits.map((digit) => resultOf(digit)) };

    const plan = planFor(parts, { cap: 2 });

    expect(plan.actions).toHaveLength(2);
    expect(plan.leftAlone.map(({ reason }) => reason)).toEqual([
      { code: "over-cap", text: "over the cap of 2 for one run; heal again" },
    ]);
  });

  test("is deterministic", () => {
    expect(planFor(ONE_DEAD)).toEqual(planFor(ONE_DEAD));
  });
});

describe("rung for a sandbox that died with the node", () => {
  test.each([
    ["removes it when its pod is unknown", {}, ["remove-sandbox, release-addresses, replay-del, quarantine-file"]],
    ["only stops it when its pod is known", { pods: ["a"] }, ["stop-sandbox"]],
    [
      "removes it when its pod is gone",
      { pods: ["b"] },
      ["remove-sandbox, release-addresses, replay-del, quarantine-file"],
    ],
    [
      "removes obstacles for a running kubelet",
      { pods: ["a"], kubeletStarted: 10, results: [resultOf("a", "empty")] },
      ["quarantine-file, await-kubelet, stop-sandbox"],
    ],
    [
      "removes every broken file, whichever made the finding",
      { results: [resultOf("a", "empty")], flannel: [scratchOf("a", "corrupt", "/var/lib/cni/flannel")] },
      ["quarantine-file, quarantine-file, remove-sandbox, release-addresses"],
    ],
    [
      "writes the multus marker when its delegates are lost",
      { conf: MULTUS, pods: ["a"] },
      ["multus-marker, stop-sandbox"],
    ],
  ] satisfies readonly (readonly [string, NodeParts, readonly string[]])[])("%s", (_title, parts, expected) => {
    expect(steps(planFor({ ...ONE_DEAD, ...parts }))).toEqual(expected);
  });

  test("skips a stopped sandbox whose pod is known", () => {
    const plan = planFor({ ...ONE_DEAD, results: [], addresses: [], pods: ["a"] });

    expect([plan.actions, plan.leftAlone]).toEqual([[], []]);
  });

  test("removes a finished pod only on request", () => {
    const parts = { sandboxes: [dead("a")], containers: [containerOf("a", { exit: FINISHED })] };

    expect(planFor(parts).actions).toEqual([]);
    expect(steps(planFor(parts, { allDead: true }))).toEqual(["remove-sandbox"]);
  });

  test.each([
    ["an opted-out pod", { annotations: { "unghost.dev/ignore": "true" } }],
    ["a Ready sandbox", { state: "ready" }],
  ] satisfies readonly (readonly [string, Partial<Sandbox>])[])(
    "never touches %s, whatever was requested",
    (_, parts) => {
      const plan = planFor({ ...ONE_DEAD, sandboxes: [{ ...dead("a"), ...parts }] }, { allDead: true });

      expect(plan.actions).toEqual([]);
    },
  );
});

describe("hung creations, leaked shims and manual steps", () => {
  test("ends a hung creation after the grace period, but not of an opted-out pod", () => {
    const parts = { records: [recordOf("a")], plugins: [pluginFor("a", "ADD", 900)] };
    const ignored = { ...recordOf("a"), labels: { "unghost.dev/ignore": "true" } };

    expect(steps(planFor(parts))).toEqual(["end-process"]);
    expect(planFor(parts, { inflightGraceMs: 3_600_000 }).actions).toEqual([]);
    expect(reasons(planFor({ ...parts, records: [ignored] }))).toEqual(["it is opted out by unghost.dev/ignore"]);
  });

  test("ends a leaked shim only when that class alone is named", () => {
    const parts = { shims: [shimOf("a")] };

    expect(reasons(planFor(parts))).toEqual([
      expect.stringMatching(
        /^manual \(to allow it: unghost heal --allow shim-leak, or agent\.classes\.shim-leak: heal\): /,
      ),
    ]);
    expect(steps(planFor(parts, { consented: new Set(["shim-leak"]) }))).toEqual(["end-process"]);
    expect(planFor(parts, { only: ["shim-leak"] }).actions).toEqual([]);
  });

  test("lists the manual steps", () => {
    const name = { name: "web_default_uid_0" };
    const parts = {
      sandboxes: [sandboxOf("a", { state: "ready" })],
      records: [recordOf("a", name), recordOf("b", name)],
    };

    expect(reasons(planFor(parts))).toEqual([expect.stringContaining("block every restart of the runtime")]);
  });
});

describe("a removal that an earlier run started", () => {
  test("is completed, even without another finding about the sandbox", () => {
    const diagnosis = diagnosed(ONE_DEAD, POLICY);
    const quiet = { ...diagnosis, findings: [] };
    const [candidate] = diagnosis.dead;

    const unfinished = new Set<string>([candidate?.sandbox.id ?? ""]);

    expect(planHealing(quiet, POLICY).actions).toEqual([]);
    expect(steps(planHealing(quiet, { ...POLICY, unfinished })).join()).toContain("remove-sandbox");
  });
});

describe("a finished pod whose stop failed", () => {
  const killed = "netplugin failed with no error message: signal: killed";

  test.each([
    [
      "is stopped and keeps its record and logs, when the runtime reports it",
      delErrorLine("a", killed),
      ["stop-sandbox"],
    ],
    ["is skipped, when a log line only contains such a report", `hook: ${delErrorLine("a", killed)}`, []],
  ])("%s", (_, line, expected) => {
    const parts = { ...ONE_DEAD, containers: [containerOf("a", { exit: FINISHED })], logLines: [line] };
    const diagnosis = diagnosed(parts, POLICY);
    const [finished] = diagnosis.dead;
    if (finished === undefined) throw new Error("the finished pod is not proven dead");
    const finding: Finding = {
      id: "del-timeout-killed/a",
      class: "del-timeout-killed",
      severity: "warning",
      subject: { type: "sandbox", sandboxId: finished.sandbox.id },
      summary: "its stop failed",
      evidence: [{ source: "logs", fact: line }],
      blocks: [],
      treatment: { automatic: true, reversible: false, steps: [] },
      cure: [],
    };

    expect(finished.retained).toBeDefined();
    expect(steps(planHealing({ ...diagnosis, findings: [finding] }, POLICY))).toEqual(expected);
  });
});
