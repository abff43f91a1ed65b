import { describe, expect, test } from "vitest";
import { listOf } from "../kube/stub-server.ts";
import { type Answers, fleetRig, REPORTS_PATH, reportObject } from "./fleet-rig.ts";

const POD = "/api/v1/namespaces/shop/pods/web-0";
const EVENTS = "/api/v1/namespaces/shop/events";
const NODE = "/api/v1/nodes/n1";
const REPORT = `${REPORTS_PATH}/n1`;
const SANDBOX = "3f9c0de1".repeat(8);

const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

function pod(parts: { readonly metadata?: object; readonly spec?: object; readonly status?: object } = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web-0", namespace: "shop", uid: "7d1f", creationTimestamp: ago(700), ...parts.metadata },
    spec: { nodeName: "n1", containers: [{ name: "main" }], ...parts.spec },
    status: {
      phase: "Pending",
      conditions: [
        { type: "PodReadyToStartContainers", status: "False", lastTransitionTime: ago(650) },
        { type: "PodScheduled", status: "True", lastTransitionTime: ago(690) },
      ],
      containerStatuses: [waiting("ContainerCreating")],
      ...parts.status,
    },
  };
}

function waiting(reason: string, message?: string, more: object = {}) {
  return { name: "main", ready: false, restartCount: 0, state: { waiting: { reason, message } }, ...more };
}

function node(status = "True", message = "kubelet is posting ready status", reason = "KubeletReady") {
  return {
    metadata: { name: "n1" },
    status: { conditions: [{ type: "Ready", status, reason, message, lastTransitionTime: ago(300) }] },
  };
}

function event(reason: string, message: string, parts: object = {}) {
  return {
    metadata: { name: `web-0.${reason}`, namespace: "shop", creationTimestamp: ago(600) },
    involvedObject: { kind: "Pod", namespace: "shop", name: "web-0", uid: "7d1f" },
    type: "Warning",
    reason,
    message,
    count: 14,
    source: { component: "kubelet", host: "n1" },
    firstTimestamp: ago(600),
    lastTimestamp: ago(20),
    ...parts,
  };
}

interface Situation {
  readonly pod?: object;
  readonly node?: object;
  readonly events?: readonly object[];
  readonly report?: object;
}

function cluster({ pod: thePod = pod(), node: theNode = node(), events = [], report = {} }: Situation): Answers {
  return { [POD]: thePod, [NODE]: theNode, [EVENTS]: listOf(events), [REPORT]: reportObject("n1", report) };
}

interface Diagnosis {
  readonly code: string;
  readonly class?: string;
  readonly what: string;
  readonly isOurs: boolean;
  readonly since?: string;
  readonly blocks: readonly string[];
  readonly remedy?: string;
  readonly next: string;
}

async function why(answers: Answers): Promise<Diagnosis & { readonly exit: number }> {
  const rig = await fleetRig(answers);
  const { code, stdout } = await rig.fleet("why", "shop/web-0", "-o", "json");
  const { items } = JSON.parse(stdout) as { readonly items: readonly [Diagnosis] };
  return { ...items[0], exit: code };
}

const sandboxError = (text: string) => `Failed to create pod sandbox: rpc error: code = Unknown desc = ${text}`;

const TORN = {
  verdict: "ghosts",
  worstClass: "libcni-result-cache-corrupt",
  totals: { findings: 1, blockedPods: 2 },
  blockedPods: ["shop/web-0", "shop/web-1"],
  findings: [
    {
      class: "libcni-result-cache-corrupt",
      severity: "critical",
      summary: "The sandbox of shop/web-0 is dead, and each try to stop it fails on an empty CNI result file",
      pod: "shop/web-0",
      since: ago(900),
      blocks: 1,
      standing: "waiting",
    },
  ],
};

/** The situation, and what has to be the cause. */
const SITUATIONS: Readonly<Record<string, readonly [Situation, Partial<Diagnosis> | { readonly what: unknown }]>> = {
  "held name": [
    {
      events: [
        event(
          "FailedCreatePodSandBox",
          sandboxError(
            `failed to reserve sandbox name "web-0_shop_7d1f_1": name "web-0_shop_7d1f_1" is reserved for "${SANDBOX}"`,
          ),
        ),
      ],
    },
    { code: "sandbox", class: "sandbox-name-held-by-inflight-run", isOurs: true },
  ],
  "failing DEL": [
    {
      pod: pod({ metadata: { deletionTimestamp: ago(500) } }),
      events: [
        event(
          "FailedKillPod",
          `error killing pod: failed to "KillPodSandbox" for "7d1f" with KillPodSandboxError: "rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${SANDBOX}\\": plugin type=\\"calico\\" failed (delete): netplugin failed: exit status 3"`,
        ),
      ],
    },
    { code: "sandbox", isOurs: true, what: expect.stringMatching(/^Removing its sandbox fails: .*netplugin failed/) },
  ],
  "torn cache": [
    { report: TORN },
    {
      code: "sandbox",
      class: "libcni-result-cache-corrupt",
      isOurs: true,
      blocks: ["shop/web-1"],
      next: "the agent heals it once it has lasted long enough",
      remedy: "on n1: unghost heal shop/web-0",
    },
  ],
  "CNI daemon down": [
    {
      events: [
        event(
          "FailedCreatePodSandBox",
          sandboxError(
            `failed to setup network for sandbox "${SANDBOX}": plugin type="cilium-cni" failed (add): unable to connect to Cilium agent: failed to create cilium agent client after 30.000000 seconds timeout: Get "http://localhost/v1/config": dial unix /var/run/cilium/cilium.sock: connect: no such file or directory`,
          ),
        ),
      ],
    },
    { code: "sandbox", class: "cilium-agent-down" },
  ],
  "CNI not initialised": [
    {
      node: node(
        "False",
        "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
        "KubeletNotReady",
      ),
      events: [
        event(
          "NetworkNotReady",
          "network is not ready: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
        ),
      ],
    },
    { code: "network-not-ready", class: "cni-not-initialized", isOurs: false },
  ],
  "CSI socket missing": [
    {
      events: [
        event(
          "FailedMount",
          'MountVolume.SetUp failed for volume "pvc-1" : rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /var/lib/kubelet/plugins/csi.example.com/csi.sock: connect: no such file or directory"',
        ),
        event(
          "FailedMount",
          "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data]: timed out waiting for the condition",
          { lastTimestamp: ago(1) },
        ),
      ],
    },
    { code: "volume", isOurs: false, what: expect.stringContaining("csi.sock: connect: no such file") },
  ],
  "CSI driver not registered": [
    {
      events: [
        event(
          "FailedMount",
          'MountVolume.MountDevice failed for volume "pvc-1" : kubernetes.io/csi: attacher.MountDevice failed to create newCsiDriverClient: driver name csi.example.com not found in the list of registered CSI drivers',
        ),
      ],
    },
    {
      code: "volume",
      what: expect.stringContaining("CSI driver is not registered on this node"),
      remedy: expect.stringContaining("node-driver-registrar"),
    },
  ],
  "Multi-Attach": [
    {
      events: [
        event(
          "FailedMount",
          "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data]: timed out waiting for the condition",
          { lastTimestamp: ago(1) },
        ),
        event("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) web-1', {
          source: { component: "attachdetach-controller" },
          lastTimestamp: ago(500),
        }),
      ],
    },
    { code: "volume", class: "volume-attachment-stuck", what: expect.stringMatching(/^A volume is not attached/) },
  ],
  "volume not mounted": [
    {
      events: [event("FailedMount", 'MountVolume.SetUp failed for volume "settings" : configmap "settings" not found')],
    },
    { code: "volume", isOurs: false, what: expect.stringMatching(/^A volume is not mounted/) },
  ],
  "node NotReady": [
    { node: node("Unknown", "Kubelet stopped posting node status.", "NodeStatusUnknown") },
    { code: "node-not-ready", isOurs: false, what: "Its node n1 is NotReady: kubelet has stopped reporting." },
  ],
  "image missing": [
    {
      pod: pod({
        status: {
          conditions: [{ type: "PodReadyToStartContainers", status: "True", lastTransitionTime: ago(600) }],
          containerStatuses: [waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/web:2"')],
        },
      }),
      events: [
        event(
          "Failed",
          'Failed to pull image "registry.example/web:2": rpc error: code = NotFound desc = failed to pull and unpack image: not found',
        ),
      ],
    },
    {
      code: "image",
      isOurs: false,
      what: expect.stringContaining('its image cannot be pulled: Failed to pull image "registry.example/web:2"'),
    },
  ],
  unschedulable: [
    {
      pod: pod({
        spec: { nodeName: undefined },
        status: {
          conditions: [
            {
              type: "PodScheduled",
              status: "False",
              reason: "Unschedulable",
              message: "0/3 nodes are available: 3 Insufficient cpu.",
              lastTransitionTime: ago(60),
            },
          ],
          containerStatuses: [],
        },
      }),
    },
    {
      code: "unscheduled",
      isOurs: false,
      what: "The scheduler finds no node for it: 0/3 nodes are available: 3 Insufficient cpu.",
    },
  ],
  "crash loop": [
    {
      pod: pod({
        status: {
          phase: "Running",
          conditions: [{ type: "PodReadyToStartContainers", status: "True" }],
          containerStatuses: [
            waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container", {
              lastState: { terminated: { reason: "Error", exitCode: 2, finishedAt: ago(90) } },
            }),
          ],
        },
      }),
    },
    {
      code: "crash",
      isOurs: false,
      what: "Container main: its program ends again and again: it last ended with Error (exit code 2)",
    },
  ],
  "failing probe": [
    {
      pod: pod({
        status: {
          phase: "Running",
          conditions: [
            { type: "PodReadyToStartContainers", status: "True" },
            { type: "Ready", status: "False" },
          ],
          containerStatuses: [{ name: "main", ready: false, state: { running: { startedAt: ago(200) } } }],
        },
      }),
      events: [event("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")],
    },
    {
      code: "probe",
      isOurs: false,
      what: "Container main runs and is not ready: Readiness probe failed: HTTP probe failed with statuscode: 503",
    },
  ],
  "a finalizer": [
    { pod: pod({ metadata: { deletionTimestamp: ago(500), finalizers: ["example.com/hold"] } }) },
    { code: "finalizer", isOurs: false },
  ],
};

describe("unghost fleet why", () => {
  test.each(Object.keys(SITUATIONS))("finds the cause first: %s", async (name) => {
    const [situation, expected] = SITUATIONS[name] ?? [{}, {}];

    const found = await why(cluster(situation));

    expect(found).toMatchObject(expected);
    expect(found.exit).toBe(1);
    expect(Date.now() - Date.parse(found.since ?? "")).toBeGreaterThan(50_000);
  });

  test.each([
    [
      "a StatefulSet",
      "StatefulSet",
      "web",
      'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=10, limited: pods=10',
    ],
    [
      "a ReplicaSet",
      "ReplicaSet",
      "web-0-6d4cf56db6",
      'Error creating: pods "web-0-6d4cf56db6-x7k2p" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=10, limited: pods=10',
    ],
  ])("finds the quota that prevents the pod of %s", async (_title, kind, name, message) => {
    const created = event("FailedCreate", message, {
      involvedObject: { kind, namespace: "shop", name, uid: "5e7" },
      source: { component: "controller" },
    });
    const { [POD]: _, ...answers } = cluster({ events: [created] });

    expect(await why(answers)).toMatchObject({
      exit: 1,
      code: "not-created",
      isOurs: false,
      what: expect.stringMatching(new RegExp(`^${kind}/${name} may not create the pod: .*quota`, "i")),
    });
  });

  test("of a pod that does not exist answers so", async () => {
    expect(await why({ [EVENTS]: listOf([]) })).toMatchObject({ exit: 2, code: "no-pod" });
  });

  test.each([
    [
      "running",
      pod({
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True", lastTransitionTime: ago(9) }] },
      }),
    ],
    ["finished", pod({ status: { phase: "Succeeded" } })],
    [
      "starting",
      pod({
        metadata: { creationTimestamp: ago(5) },
        status: { conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: ago(4) }] },
      }),
    ],
  ])("of a pod that is %s exits 0", async (code, thePod) => {
    expect(await why(cluster({ pod: thePod }))).toMatchObject({ exit: 0, code });
  });

  test("does not pretend: without a reason in the API the cause is unknown", async () => {
    expect(await why(cluster({}))).toMatchObject({
      exit: 2,
      code: "unknown",
      remedy: expect.stringContaining("unghost scan shop/web-0"),
    });
  });

  test("names what kubelet 1.37 reports about the sandbox when no event is left", async () => {
    const message = "pod sandbox has no IP address";
    const since = ago(650);
    const condition = { type: "PodReadyToStartContainers", status: "False", reason: "PodSandboxNotReady", message };
    const conditions = [{ ...condition, lastTransitionTime: since }];

    expect(await why(cluster({ pod: pod({ status: { conditions } }) }))).toMatchObject({
      exit: 2,
      code: "unknown",
      since,
      what: `It has no usable sandbox (kubelet: ${message}), and no event shows why.`,
      evidence: [{ source: "kubelet", fact: `PodReadyToStartContainers is False: ${message}` }],
    });
  });

  test.each([
    [{ standing: "healing" }, {}, "the agent is healing it now"],
    [{ standing: "observed" }, {}, "the agent only reports it: nothing changes without a repair"],
    [{ standing: "waiting" }, { notHealing: "nothing is healed: paused" }, "nothing is healed: paused"],
    [
      { standing: "given-up", next: "Restart containerd." },
      {},
      "the agent has stopped trying: manual steps are needed",
    ],
  ])("of a finding that is %j reports what happens next", async (standing, more, next) => {
    const [finding] = TORN.findings;
    const report = { ...TORN, ...more, findings: [{ ...finding, ...standing }] };

    expect(await why(cluster({ report }))).toMatchObject({ next });
  });

  test("leaves out events about an earlier pod of the same name", async () => {
    const earlier = event("FailedCreatePodSandBox", sandboxError("boom"), {
      involvedObject: { kind: "Pod", name: "web-0", uid: "other" },
    });

    expect(await why(cluster({ events: [earlier] }))).toMatchObject({ code: "unknown" });
  });

  test("prints the cause first, and everything else below", async () => {
    const rig = await fleetRig(cluster({ report: TORN }));

    const { code, stdout } = await rig.fleet("why", "web-0", "-n", "shop");

    expect(code).toBe(1);
    const labels = stdout.split("\n").flatMap((line) => /^ {2}(\S[\w ]*):/.exec(line)?.[1] ?? []);
    expect(stdout).toMatch(/^shop\/web-0: .*CNI result/);
    expect(labels).toEqual(["Class", "Node", "Since", "Evidence", "Also blocks", "Next", "To do"]);
    expect(rig.server.asked.length).toBeLessThanOrEqual(4);
  });

  test("escapes terminal sequences of events and reports", async () => {
    const evil = event("FailedCreatePodSandBox", sandboxError("\u001b]0;owned\u0007 \u202e"));
    const rig = await fleetRig(cluster({ events: [evil] }));

    for (const output of ["table", "json", "yaml", "jsonpath={.items[0].what}"]) {
      const { stdout } = await rig.fleet("why", "shop/web-0", "-o", output);
      for (const hidden of ["\u001b", "\u0007", "\u202e"])
        expect([output, stdout.includes(hidden)]).toEqual([output, false]);
    }
  });

  test.each([[[]], [["a", "b"]], [["a/b/c"]], [["/web"]]])("refuses %j", async (args) => {
    const rig = await fleetRig({});

    expect(await rig.fleet("why", ...args)).toMatchObject({ code: 64 });
    expect(rig.server.asked).toEqual([]);
  });
});
