import { describe, expect, test } from "vitest";
import { shownDigest } from "../../src/report/shown-plan.ts";
import { statusOf } from "../kube/stub-server.ts";
import {
  ended,
  IN_NAMESPACE,
  JOBS_PATH,
  nodeWith,
  type OneShotCluster,
  oneShotCluster,
  podOf,
  RUNNING,
  waiting,
  writesOf,
} from "./one-shot-cluster.ts";

const ID = `libcni-result-cache-corrupt/${"a".repeat(64)}`;
const FINDING = {
  id: ID,
  class: "libcni-result-cache-corrupt",
  severity: "critical",
  kind: "ghost",
  subject: {
    type: "sandbox",
    sandboxId: "a".repeat(64),
    pod: { namespace: "shop", name: "web-0", uid: "u-1", attempt: 0 },
  },
  summary: "The sandbox of shop/web-0 is dead",
  evidence: [],
  blocks: ["shop/web-0"],
  blockedPods: [{ namespace: "shop", name: "web-0" }],
  treatment: { automatic: true, reversible: true, steps: [] },
} as const;
const STEP = { step: "quarantine the file", target: "/var/lib/cni/results/x\u001b[2J", undo: true, ifLeft: false };
const REPORT = {
  apiVersion: "unghost.dev/v1",
  kind: "NodeReport",
  node: "n1",
  observedAt: "2026-03-01T12:00:00.000Z",
  runtime: { name: "containerd", version: "1.6.36", endpoint: "unix:///run/containerd.sock", reachable: true },
  kubernetes: { source: "api" },
  boot: { id: "b-1", startedAt: "2026-03-01T10:00:00.000Z" },
  sandboxes: { total: 2, ready: 1, notReady: 1 },
  kept: [],
  problems: [],
  advice: [],
};
const PLAN = {
  ...REPORT,
  verdict: "ghosts",
  findings: [FINDING],
  actions: [{ finding: ID, action: "quarantine", changes: [STEP], outcome: "skipped", code: "dry-run", seconds: 0 }],
  planDigest: `sha256:${"1".repeat(64)}`,
  remaining: [ID],
} as const;
const HEALED = {
  ...REPORT,
  verdict: "healthy",
  findings: [],
  actions: [{ finding: ID, action: "quarantine", outcome: "healed", journalId: "0kq3v8x2m1abcd", seconds: 0.4 }],
  remaining: [],
};
const logOf = (report: object) => `unghost: warning\n${JSON.stringify(report, undefined, 2)}\n`;
const PROGRESS = "RESULT  WHAT\nhealed  shop/web-0\u001b[2J\n";
const USUAL: OneShotCluster = { statuses: [RUNNING, RUNNING, ended(0)], log: [logOf(PLAN), PROGRESS + logOf(HEALED)] };

interface Job {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly [{ readonly args: string[] }] } };
  };
}

async function cluster(parts: OneShotCluster = {}) {
  const rig = await oneShotCluster({ ...USUAL, ...parts });
  const argsOfPods = () =>
    rig.server.asked.flatMap(({ method, path, body }) =>
      method === "POST" && path === JOBS_PATH ? [(body as Job).spec.template.spec.containers[0].args] : [],
    );
  return { ...rig, argsOfPods, writes: () => writesOf(rig) };
}

const PLAN_ARGS = ["heal", "--dry-run", "-o", "json", "--host-root=/host"];
const ONE_POD = [`POST ${IN_NAMESPACE}?dryRun=All`, `POST ${JOBS_PATH}`, `DELETE ${JOBS_PATH}/unghost-x`];

describe("unghost fleet heal on a node without an agent", () => {
  test("shows the plan that one pod made, and lets another heal exactly that plan", async () => {
    const { fleet, argsOfPods, writes } = await cluster();

    const { code, stdout, stderr } = await fleet("heal", "n1", "--yes");

    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining("n1: making the plan by a privileged pod in kube-system"),
    ]);
    expect(stdout).toMatch(/^Plan: heal 1 ghost on n1\n/);
    expect(stdout).toContain("quarantine the file: /var/lib/cni/results/x");
    expect(stdout).toMatch(/^healed +shop\/web-0 +libcni-result-cache-corrupt +0kq3v8x2m1abcd +0\.4s$/m);
    expect(stdout).toContain("n1: 1 healed, nothing left");
    expect(stderr).toContain("n1: healed  shop/web-0");
    expect(stdout + stderr).not.toContain("\u001b");
    expect(argsOfPods()).toEqual([
      PLAN_ARGS,
      ["heal", `--plan=${shownDigest(PLAN)}`, "-o", "json", "--host-root=/host"],
    ]);
    expect(writes()).toEqual([...ONE_POD, ...ONE_POD]);
  });

  test("starts no second pod without consent", async () => {
    const [mute, dry] = [await cluster(), await cluster()];

    expect(await mute.fleet("heal", "n1")).toMatchObject({ code: 3, stdout: expect.stringContaining("Add --yes") });
    expect(await dry.fleet("heal", "n1", "--dry-run")).toMatchObject({ code: 1 });
    expect([mute.argsOfPods(), dry.argsOfPods()]).toEqual([[PLAN_ARGS], [PLAN_ARGS]]);
  });

  test("hands targets, a namespace and allowed classes to both pods", async () => {
    const { fleet, argsOfPods } = await cluster();

    await fleet("heal", "n1", "--yes", "--target=shop/web-0", "-n", "shop", "--allow=shim-leak");

    for (const args of argsOfPods())
      expect(args).toEqual(expect.arrayContaining(["shop/web-0", "--namespace=shop", "--allow=shim-leak"]));
    expect(argsOfPods()).toHaveLength(2);
    expect(await fleet("heal", "n1", "--yes", "--target=--plan=x")).toMatchObject({ code: 64 });
  });

  test("prints one document with -o json", async () => {
    const { fleet } = await cluster();

    const { stdout, code } = await fleet("heal", "n1", "--yes", "-o", "json");

    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: "FleetHeal",
      items: [{ node: "n1", outcome: "healed", actions: [{ pod: "shop/web-0", journalId: "0kq3v8x2m1abcd" }] }],
    });
  });

  test("another digest is asked for where the log shows another pod, class or step than the plan has", () => {
    const others = [
      {
        ...PLAN,
        findings: [{ ...FINDING, subject: { ...FINDING.subject, pod: { ...FINDING.subject.pod, name: "x" } } }],
      },
      { ...PLAN, findings: [{ ...FINDING, class: "other" }] },
      { ...PLAN, actions: [{ ...PLAN.actions[0], changes: [{ ...STEP, target: "/other" }] }] },
      { ...PLAN, actions: [] },
      { ...PLAN, planDigest: `sha256:${"2".repeat(64)}` },
    ];

    expect(new Set([PLAN, ...others].map(shownDigest)).size).toBe(1 + others.length);
  });

  const refused = (sentence: string) => `observed\nNothing was changed: ${sentence}\n`;

  test.each([
    [
      "the plan has changed",
      refused("the node, or the flags, changed since the plan was saved. Make a new plan: unghost heal --dry-run"),
      3,
      { outcome: "refused", code: "plan-changed", next: expect.stringContaining("Run the command again") },
      3,
    ],
    [
      "the node is paused",
      refused("this node is paused."),
      3,
      { outcome: "refused", message: "Nothing was changed: this node is paused." },
      3,
    ],
    ["unghost ends without a report", "Killed\n", 137, { outcome: "unknown", code: "no-report" }, 2],
    [
      "something is left",
      logOf({
        ...HEALED,
        verdict: "ghosts",
        findings: [FINDING],
        actions: [{ ...HEALED.actions[0], outcome: "failed" }],
      }),
      1,
      { outcome: "incomplete", left: [expect.stringContaining("shop/web-0")] },
      1,
    ],
  ])("where %s, says so", async (_title, log, podCode, item, code) => {
    const { fleet } = await cluster({
      log: [logOf(PLAN), log],
      statuses: (pod) => [RUNNING, RUNNING, ended(pod === 1 ? 1 : podCode)],
    });

    const ran = await fleet("heal", "n1", "--yes", "-o", "json");

    expect(ran.code).toBe(code);
    expect(JSON.parse(ran.stdout)).toMatchObject({ items: [{ node: "n1", ...item }] });
  });

  test.each([
    [
      "PodSecurity refuses the pod",
      { dryRun: statusOf(403, 'violates PodSecurity "baseline:latest": host namespaces') },
      "pod-security",
      /--one-shot-namespace/,
    ],
    ["the image is missing", { statuses: [waiting("ErrImagePull", "not found")] }, "image", /--image/],
    [
      "kubelet is down",
      { node: nodeWith({ ready: "Unknown" }) },
      "kubelet-down",
      /^ssh 192\.0\.2\.7 sudo unghost heal shop\/web-0$/,
    ],
    [
      "kubelet is down on Talos",
      { node: nodeWith({ osImage: "Talos (v1.13.2)", ready: "Unknown" }) },
      "kubelet-down",
      /^talosctl -n 192\.0\.2\.7 debug unghost\.tar --args heal,shop\/web-0,--host-root,\/host$/,
    ],
    [
      "the pod is not admitted",
      { statuses: [{ phase: "Failed", reason: "OutOfpods" }] },
      "not-admitted",
      /^ssh 192\.0\.2\.7 sudo unghost heal shop\/web-0$/,
    ],
  ])("where %s, one sentence says so, and what to do", async (_title, parts, itsCode, next) => {
    const { fleet } = await cluster(parts);

    const { code, stdout } = await fleet("heal", "n1", "--yes", "--target=shop/web-0", "-o", "json");

    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      items: [{ outcome: "no-answer", code: itsCode, message: expect.any(String), next: expect.stringMatching(next) }],
    });
  });

  test("reads no report of a pod that somebody else labelled as ours", async () => {
    const forged = podOf({ spec: { template: { spec: { nodeName: "n1", containers: [] } } } }, ended(0), "forged");
    const { fleet, server } = await cluster({ others: [forged] });

    expect(await fleet("heal", "n1", "--yes")).toMatchObject({ code: 0 });
    expect(server.asked.filter(({ path }) => path.includes("forged"))).toEqual([]);
  });
});
