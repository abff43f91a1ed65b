import { describe, expect, test } from "vitest";
import { statusOf } from "../kube/stub-server.ts";
import {
  ended,
  IN_NAMESPACE,
  JOBS_PATH,
  nodeWith,
  oneShotCluster,
  RUNNING,
  waiting,
  writesOf,
} from "./one-shot-cluster.ts";

const REPORT = {
  apiVersion: "unghost.dev/v1",
  kind: "NodeReport",
  node: "n1",
  observedAt: "2026-03-01T12:00:00.000Z",
  verdict: "ghosts",
  runtime: {
    name: "containerd",
    version: "1.6.36",
    endpoint: "unix:///run/containerd/containerd.sock",
    reachable: true,
  },
  kubernetes: { source: "api" },
  boot: { id: "b-1", startedAt: "2026-03-01T10:00:00.000Z" },
  sandboxes: { total: 2, ready: 1, notReady: 1 },
  findings: [
    {
      id: "f-1",
      class: "libcni-result-cache-corrupt",
      severity: "critical",
      subject: { type: "sandbox", sandboxId: "a".repeat(64) },
      summary: "The sandbox of shop/web-0 is dead",
      evidence: [],
      blocks: ["shop/web-0"],
      blockedPods: [{ namespace: "shop", name: "web-0" }],
      treatment: { automatic: true, reversible: true, steps: [] },
    },
  ],
  kept: [],
  problems: [],
  advice: [],
};
const LOG = `unghost: warning: something on stderr\n${JSON.stringify(REPORT, undefined, 2)}\nand after it\n`;

interface Scanned {
  readonly items: readonly [
    { verdict: string; oneShot?: { code: string; message?: string; next?: string }; report?: object },
  ];
}

const DELETES_JOB = `DELETE ${JOBS_PATH}/unghost-x`;
const MADE = [`POST ${IN_NAMESPACE}?dryRun=All`, `POST ${JOBS_PATH}`];

describe("unghost fleet scan --without-agents", () => {
  test("scans a node without an agent by a privileged one-shot pod, and removes it", async () => {
    const rig = await oneShotCluster({ log: LOG, statuses: [undefined, RUNNING, RUNNING, ended(1)] });

    const { code, stdout, stderr } = await rig.fleet("scan", "--without-agents", "--image", "example/unghost:1");

    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^n1 +ghosts +1 libcni-result-cache-corrupt +1 +- +Ready +none \(one-shot pod\)$/m),
    ]);
    expect(stderr).toContain("n1: scanning by a privileged pod in kube-system, removed afterwards\n");
    expect(writesOf(rig)).toEqual([...MADE, DELETES_JOB]);
    const job = rig.server.asked.find(({ method, path }) => method === "POST" && path === JOBS_PATH)?.body;
    expect(job).toMatchObject({
      spec: {
        backoffLimit: 0,
        activeDeadlineSeconds: expect.any(Number),
        ttlSecondsAfterFinished: expect.any(Number),
        template: {
          spec: {
            nodeName: "n1",
            hostNetwork: true,
            hostPID: true,
            restartPolicy: "Never",
            automountServiceAccountToken: false,
            activeDeadlineSeconds: expect.any(Number),
            tolerations: [{ operator: "Exists" }],
            containers: [
              {
                image: "example/unghost:1",
                args: ["scan", "-o", "json", "--host-root=/host"],
                securityContext: { privileged: true },
              },
            ],
            volumes: [{ name: "host", hostPath: { path: "/" } }],
          },
        },
      },
    });
  });

  test("without the flag starts nothing, and prints which nodes have no agent and the command line", async () => {
    const rig = await oneShotCluster({});

    const { code, stderr } = await rig.fleet("scan");

    expect([code, writesOf(rig)]).toEqual([2, []]);
    expect(stderr).toContain(
      "No ready agent on 1 node: n1. To scan by a privileged one-shot pod: unghost fleet scan --without-agents n1\n",
    );
  });

  const TALOS = nodeWith({ osImage: "Talos (v1.13.2)", ready: "Unknown" });

  test.each([
    [
      "PodSecurity refuses the pod",
      {
        dryRun: statusOf(
          403,
          'pods "unghost-" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',
        ),
      },
      "pod-security",
      /^the namespace kube-system enforces the PodSecurity level "baseline", which refuses privileged pods$/,
      /-n \(most clusters exempt kube-system\)/,
    ],
    [
      "RBAC refuses the pod",
      {
        dryRun: statusOf(
          403,
          'pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "kube-system"',
        ),
      },
      "forbidden",
      /^you may not create pods in the namespace kube-system$/,
      /unghost-one-shot/,
    ],
    [
      "the image is missing",
      { statuses: [waiting("ErrImagePull", "not found")] },
      "image",
      /cannot be pulled \(ErrImagePull: not found\)$/,
      /--image/,
    ],
    [
      "kubelet does not admit the pod",
      { statuses: [{ phase: "Failed", reason: "OutOfpods", message: "Node didn't have enough resource: pods" }] },
      "not-admitted",
      /^kubelet does not run the pod \(OutOfpods: /,
      /^ssh 192\.0\.2\.7 sudo unghost scan$/,
    ],
    [
      "its container does not start",
      { statuses: [waiting("RunContainerError", "runc: no such file")] },
      "not-started",
      /^its container does not start \(RunContainerError: runc: no such file\)$/,
      /^ssh /,
    ],
    [
      "its kubelet is down",
      { node: nodeWith({ ready: "Unknown" }) },
      "kubelet-down",
      /^its kubelet is down \(NotReady since 2026-03-01T12:00:00Z\), so that no pod can start there$/,
      /^ssh 192\.0\.2\.7 sudo unghost scan$/,
    ],
    [
      "its kubelet is down on Talos 1.13",
      { node: TALOS },
      "kubelet-down",
      /^its kubelet is down/,
      /^talosctl -n 192\.0\.2\.7 debug unghost\.tar --args scan,--host-root,\/host$/,
    ],
    [
      "an admission webhook refuses the pod",
      { dryRun: statusOf(400, 'admission webhook "policy.example" denied the request: no privileged pods') },
      "refused",
      /denied the request: no privileged pods/,
      /^kubectl debug node\/n1 -it --profile=sysadmin -n kube-system --image=\S+ -- unghost scan$/,
    ],
    ["it runs Windows", { node: nodeWith({ operatingSystem: "windows" }) }, "not-linux", /does not run Linux/, /Linux/],
    [
      "the image is not unghost's",
      { log: "exec format error\n", statuses: [ended(255)] },
      "no-report",
      /^unghost ended with code 255 and without a report: exec format error$/,
      /is an image of unghost/,
    ],
  ])("where %s, one sentence says so, and what to do", async (_title, cluster, code, message, next) => {
    const rig = await oneShotCluster(cluster);

    const { stdout, stderr, ...ran } = await rig.fleet("scan", "--without-agents", "-o", "json");

    const { items } = JSON.parse(stdout) as Scanned;
    const { oneShot } = items[0];
    expect([ran.code, items[0].verdict]).toEqual([2, "unknown"]);
    expect(oneShot).toEqual({ code, message: expect.stringMatching(message), next: expect.stringMatching(next) });
    expect(stderr).toContain(`unghost: n1: ${oneShot?.message}. ${oneShot?.next}\n`);
    const writes = writesOf(rig);
    if (writes.includes(`POST ${JOBS_PATH}`)) expect(writes).toContain(DELETES_JOB);
  });

  test("a pod that never started is deleted although kubelet does not confirm it", async () => {
    const rig = await oneShotCluster({ statuses: [waiting("ErrImageNeverPull")] });

    await rig.fleet("scan", "--without-agents");

    expect(writesOf(rig)).toEqual([...MADE, DELETES_JOB, `DELETE ${IN_NAMESPACE}/unghost-x-1`]);
  });
});
