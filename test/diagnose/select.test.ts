import { describe, expect, test } from "vitest";
import { type Diagnosis, diagnose } from "../../src/diagnose/diagnose.ts";
import { resolveTargets, select } from "../../src/diagnose/select.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import { planHealing } from "../../src/plan/plan.ts";
import { AT_ONCE, containerOf, idOf, LOST, sandboxOf, snapshotOf } from "../support/snapshot-builder.ts";

const PODS = { a: "web-0", b: "web-1", c: "db-0" };

function deadNode(): Diagnosis {
  const sandboxes = Object.entries(PODS).map(([digit, name]) => {
    const sandbox = sandboxOf(digit, { state: "notReady" });
    const namespace = name.startsWith("db") ? "data" : "shop";
    return { ...sandbox, pod: { ...sandbox.pod, namespace, name } };
  });
  const containers = Object.keys(PODS).map((digit) => containerOf(digit, { state: "exited", exit: LOST }));
  return diagnose(snapshotOf({ sandboxes, containers }), AT_ONCE);
}

function podsOf(diagnosis: Diagnosis): readonly (string | undefined)[] {
  return diagnosis.findings.map(({ subject }) => ("pod" in subject ? subject.pod?.name : undefined)).toSorted();
}

function selected(targets: readonly string[], namespaces: readonly string[] = []) {
  const whole = deadNode();
  const { targets: resolved, problems } = resolveTargets({ targets, namespaces }, whole);
  return { problems, diagnosis: select(whole, resolved, namespaces) };
}

describe("targets", () => {
  test.each([
    ["a pod", ["shop/web-0"], [], ["web-0"]],
    ["a pod by its bare name", ["web-1"], [], ["web-1"]],
    ["two pods", ["shop/web-0", "data/db-0"], [], ["db-0", "web-0"]],
    ["a sandbox id", [idOf("b")], [], ["web-1"]],
    ["a prefix of a sandbox id", ["bbbbbb"], [], ["web-1"]],
    ["a finding id", [`dead-after-crash/${idOf("c")}`], [], ["db-0"]],
    ["a namespace", [], ["shop"], ["web-0", "web-1"]],
    ["a pod within a namespace", ["web-0"], ["shop"], ["web-0"]],
    ["a finding that is gone now", [`dead-after-crash/${idOf("d")}`], [], []],
    ["a namespace without findings", [], ["elsewhere"], []],
  ])("select %s", (_, targets, namespaces, names) => {
    const { diagnosis, problems } = selected(targets, namespaces);

    expect(problems).toEqual([]);
    expect(podsOf(diagnosis)).toEqual(names);
    expect(diagnosis.verdict).toBe(names.length === 0 ? "healthy" : "ghosts");
    // However it was selected, its proof of death must be part of the plan.
    const plan = planHealing(diagnosis, { ...AT_ONCE, allDead: false, cap: 10 });
    expect(plan.actions.map(({ reason }) => reason.code)).toEqual(names.map(() => "died-with-node"));
  });

  test.each([
    ["waits for a node that starts none", "no", "notReady", "degraded"],
    ["runs there", "no", "ready", "healthy"],
    ["is on a node that starts pods", "yes", "notReady", "healthy"],
  ] as const)("without a finding: a pod that %s", (_, able, state, verdict) => {
    const sandbox = sandboxOf("e", { state });
    const whole = diagnose(snapshotOf({ sandboxes: [sandbox] }), { ...AT_ONCE, skip: ["dead-after-crash"] });
    const { namespace, name } = sandbox.pod;
    const healthy = { ...whole, findings: [], pending: [], podCreation: { able, blockedPods: [] } };

    expect(select(healthy, [{ kind: "pod", namespace, name }], []).verdict).toBe(verdict);
  });

  test.each([
    ["an unknown pod", "shop/web-9", "unknown-target"],
    ["a pod of another namespace", "data/web-0", "unknown-target"],
    ["a prefix that is too short", "aaa", "unknown-target"],
    ["a class without a subject", "dead-after-crash", "unknown-target"],
  ])("without a match are an error: %s", (_, target, code) => {
    expect(selected([target]).problems).toEqual([{ code, target }]);
  });

  test("with two matches are an error", () => {
    const whole = deadNode();
    const twins = { ...whole, findings: whole.findings.map(inNamespace("other")) };

    expect(resolveTargets({ targets: ["web-0"], namespaces: [] }, twins).problems).toMatchObject([
      { code: "ambiguous-target", target: "web-0" },
    ]);
  });

  test("limit --all-dead and restarts of other pods, too", () => {
    const whole = deadNode();
    const restarting = { ...whole, findings: whole.findings.map(restartingOthers) };
    const { targets } = resolveTargets({ targets: ["shop/web-0"], namespaces: [] }, restarting);

    const plan = planHealing(select(restarting, targets, []), { ...AT_ONCE, allDead: true, cap: 10 });

    expect(plan.actions.map(({ finding }) => finding.subject)).toMatchObject([{ sandboxId: idOf("a") }]);
    expect(plan.actions.flatMap(({ followUps = [] }) => followUps)).toEqual([]);
  });

  test("show what blocks a named pod, and leave it out of the heal", () => {
    const whole = deadNode();
    const [first] = whole.findings;
    if (first === undefined) throw new Error("there are three");
    const blocker: Finding = {
      ...first,
      id: "cni-lock-wedge/node",
      class: "cni-lock-wedge",
      subject: { type: "node" },
      blockedPods: [{ namespace: "shop", name: "web-0" }],
    };
    const { targets } = resolveTargets({ targets: ["shop/web-0"], namespaces: [] }, whole);

    const selection = select({ ...whole, findings: [...whole.findings, blocker] }, targets, []);

    expect(podsOf(selection)).toEqual(["web-0"]);
    expect(selection.alsoBlocking).toEqual([blocker]);
  });
});

function inNamespace(namespace: string): (finding: Finding) => Finding {
  return (finding) => {
    const { subject } = finding;
    if (subject.type !== "sandbox" || subject.pod === undefined) return finding;
    return { ...finding, subject: { ...subject, pod: { ...subject.pod, namespace } } };
  };
}

function restartingOthers(finding: Finding): Finding {
  const other = { kind: "kick-pod", namespace: "data", name: "db-0", uid: "u", node: "n" } as const;
  return { ...finding, followUps: [other] };
}
