import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { read } from "../../src/host/source.ts";
import type { NetnsEntry } from "../../src/node/types/cni.ts";
import { sandboxId as idFrom, podUid } from "../../src/node/types/ids.ts";
import type { ContainerExit, ContainerRecord } from "../../src/node/types/runtime.ts";
import type { Kubernetes } from "../../src/node/types/snapshot.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import { containerdLine, klog } from "../support/log-lines.ts";
import {
  AT_ONCE,
  addressOf,
  ago,
  containerOf,
  FINISHED,
  idOf,
  LOST,
  MULTUS,
  type NodeParts,
  PATIENT,
  recordOf,
  resultOf,
  sandboxOf,
  shimOf,
  snapshotOf,
  THICK_MULTUS,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

describe("dead-after-crash", () => {
  const S1 = `dead-after-crash/${idOf("a")}`;
  const dead = { sandboxes: [sandboxOf("a")], records: [recordOf("a")] } as const;
  const beforeBoot = [sandboxOf("a", { createdSecondsAgo: UPTIME_SECONDS + 60 })];
  const lost = [containerOf("a", { exit: LOST })];
  const DELEGATES_RESULT = resultOf("a", "ok", "/var/lib/cni/multus/results");
  /** The namespace is gone, and the result is of a network that the runtime does not use any more. */
  const LATER: NodeParts = { conf: { network: "multus-cni-network" }, results: [resultOf("a")] };
  const RELEASED = containerdLine(30, "info", `TearDown network for sandbox "${idOf("a")}" successfully`);
  const NETNS: NetnsEntry = { path: "/run/netns/cni-a", name: "cni-a", inode: 7n, modifiedAt: ago(600) };

  test.each<readonly [string, NodeParts, boolean]>([
    ["its containers were lost", { containers: lost }, true],
    ["its address outlived its namespace", { addresses: [addressOf("a", "10.88.0.2")] }, true],
    ["its result outlived its namespace", { results: [resultOf("a")] }, true],
    ["its network is still up and may be in teardown", { results: [resultOf("a")], netns: [NETNS] }, false],
    [
      "only a regular file is left of its namespace",
      { results: [resultOf("a")], netns: [{ ...NETNS, inode: undefined }] },
      true,
    ],
    ["it is older than the boot, with its network", { sandboxes: beforeBoot, results: [resultOf("a")] }, true],
    [
      "it is older than the boot and never had a network",
      { sandboxes: beforeBoot, records: [recordOf("a", { hasCniResult: false })] },
      true,
    ],
    ["it was torn down before the restart", { sandboxes: beforeBoot }, false],
    [
      "it finished, and its network is not yet down",
      { containers: [containerOf("a", { exit: FINISHED })], results: [resultOf("a")] },
      false,
    ],
    ["nothing shows how it died", { records: [] }, false],
    ["only multus' delegates left a result", { conf: MULTUS, results: [DELEGATES_RESULT] }, false],
    [
      "thick multus answered DEL, and its delegates left an address",
      { conf: THICK_MULTUS, results: [DELEGATES_RESULT], addresses: [addressOf("a", "10.88.0.2")] },
      false,
    ],
    ["under thick multus the runtime's own result exists", { conf: THICK_MULTUS, results: [resultOf("a")] }, true],
    ["its network was taken down after the pod network changed", LATER, false],
    ["that is reported, and its container was lost before", { ...LATER, logLines: [RELEASED], containers: lost }, true],
    ["its address is left of the earlier network", { ...LATER, addresses: [addressOf("a", "10.88.0.2", 500)] }, false],
    [
      "it ended in order before the boot, under the earlier network",
      { ...LATER, sandboxes: beforeBoot, containers: [containerOf("a", { exit: FINISHED })] },
      false,
    ],
    ["it died with the machine, under the earlier network", { ...LATER, sandboxes: beforeBoot }, true],
    ["it was lost under the earlier network", { ...LATER, containers: lost }, true],
    ["the network's name is not known", { ...LATER, conf: { network: undefined } }, true],
    ["the result is of the network that is used", { ...LATER, conf: { network: "cbr0" } }, true],
  ])("%s: %o", (_, parts, isFound) => {
    const { findings, kept } = diagnosed({ ...dead, ...parts });

    expect(findings.map(({ id }) => id)).toEqual(isFound ? [S1] : []);
    expect(kept.map(({ sandboxId }) => sandboxId)).toEqual(isFound ? [] : [idOf("a")]);
  });

  describe("while kubelet deletes the pod", () => {
    const unreleased: NodeParts = { ...dead, results: [resultOf("a")] };
    const kubeletStarted = 30;
    const stopTimedOut = klog(
      30,
      `"StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${idOf("a")}"`,
    );

    test("does not report a sandbox of this boot whose stop fails, because it is pending", () => {
      const { verdict, findings, pending, kept } = diagnosed({
        ...unreleased,
        kubeletStarted,
        logLines: [stopTimedOut],
      });

      expect([verdict, findings, kept]).toEqual(["degraded", [], []]);
      expect(pending).toMatchObject([{ reason: "removal-failing", sandboxId: idOf("a") }]);
    });

    test.each<readonly [string, NodeParts, boolean]>([
      ["a Terminating pod of this boot", { kubeletStarted }, false],
      ["a Terminating pod whose sandbox is older than the boot", { sandboxes: beforeBoot, kubeletStarted }, true],
      ["a Terminating pod without a kubelet that would tear it down", {}, true],
    ])("%s", (_, parts, isFound) => {
      const pod = { namespace: "default", name: "pod-a", uid: podUid("a"), terminating: true };
      const kubernetes: Kubernetes = {
        source: "api",
        pods: [pod],
        holds: { paused: false, node: false, namespaces: [] },
      };
      const found = diagnose(snapshotOf({ ...unreleased, ...parts }, { kubernetes }), AT_ONCE);

      expect(named(found)).toEqual(isFound ? [S1] : []);
    });
  });

  test("quotes how the runtime lists a lost container", () => {
    const asCrioDoes = { exitCode: -1, reason: "Error", finishedAt: 0n, logPath: "" };
    const containers = [...lost, containerOf("a", { name: "side", exit: asCrioDoes })];
    const [finding] = diagnosed({ ...dead, containers }).findings;

    expect(finding?.id).toBe(S1);
    expect(finding?.evidence).toContainEqual({
      source: "cri",
      fact: "no exit was recorded: main exited (exit 255, Unknown), side exited (exit -1, Error)",
    });
  });

  test.each<readonly [string, ContainerExit | undefined, boolean]>([
    ["has a known exit", { ...FINISHED, exitCode: 137, reason: "Error" }, false],
    ["was lost", LOST, true],
    ["has an exit that could not be read", undefined, true],
  ])("an address that outlived the namespace of a deleted pod whose container %s", (_, exit, isFound) => {
    const container = containerOf("a", exit === undefined ? {} : { exit });
    const parts = { ...dead, containers: [container], addresses: [addressOf("a", "10.88.0.2", 500)] };
    const kubernetes: Kubernetes = { source: "api", pods: [], holds: { paused: false, node: false, namespaces: [] } };

    expect(named(diagnose(snapshotOf(parts, { kubernetes }), AT_ONCE))).toEqual([
      isFound ? S1 : `pod-gone/${idOf("a")}`,
    ]);
  });

  test.each<readonly [string, NodeParts, boolean]>([
    ["has just started", { kubeletStarted: UPTIME_SECONDS - 30, pods: ["a"] }, false],
    ["started long ago", { kubeletStarted: 10, pods: ["a"] }, true],
    ["has just started and does not have the pod", { kubeletStarted: UPTIME_SECONDS - 30, pods: [] }, true],
    ["is not running", {}, true],
  ])("while kubelet %s: %o", (_, parts, isFound) => {
    const { findings } = diagnosed({ ...dead, containers: lost, results: [resultOf("a")], ...parts }, PATIENT);

    expect(findings.map(({ id }) => id)).toEqual(isFound ? [S1] : []);
  });
});

describe("kubelet-blocked-by-orphan-container", () => {
  const stray = containerOf("a", { exit: LOST });
  const D6 = `kubelet-blocked-by-orphan-container/${stray.id}`;

  test.each<readonly [string, NodeParts, boolean]>([
    ["its sandbox is not listed", {}, true],
    ["its sandbox has a record that the runtime did not load", { records: [recordOf("a")] }, true],
    ["its sandbox is listed", { sandboxes: [sandboxOf("a", { state: "ready" })] }, false],
    ["it is running", { containers: [{ ...stray, state: "running" }] }, false],
    ["a shim carries its sandbox's id", { shims: [shimOf("a")] }, false],
    ["a process runs in its cgroup", { processesOf: { [stray.id]: [7] } }, false],
    ["its task is unanswered", { tasks: [{ containerId: stray.id, pid: 0, status: "unanswered" }] }, false],
    [
      "another container of the same sandbox runs",
      { containers: [stray, containerOf("a", { id: containerOf("b").id, state: "running" })] },
      false,
    ],
    ["it is opted out", { containers: [{ ...stray, labels: { "unghost.dev/ignore": "true" } }] }, false],
    ["its sandbox's id is of another format", { containers: [{ ...stray, sandboxId: idFrom("s") }] }, false],
  ])("a container, and %s: %o", (_, parts, isFound) => {
    const found = named(diagnosed({ containers: [stray], ...parts }, PATIENT));
    // A shim of a sandbox that is not listed is a leak, and its own finding.
    expect(found.filter((id) => !id.startsWith("shim-leak/"))).toEqual(isFound ? [D6] : []);
  });

  test("nothing while the list of sandboxes is incomplete", () => {
    const cri = read({ conditions: [], sandboxes: [], containers: [stray], sandboxesIncomplete: true as const });

    expect(named(diagnosed({}, PATIENT, { cri }))).toEqual([]);
  });

  test("keeps a node down only while no kubelet runs, and is removed alone", () => {
    const [down] = diagnosed({ containers: [stray] }).findings;
    const [up] = diagnosed({ containers: [stray], kubeletStarted: 20 }).findings;

    expect([down?.severity, down?.blocks.length, up?.severity, up?.blocks]).toEqual(["critical", 1, "warning", []]);
    expect(down?.cure).toEqual([{ kind: "remove-container", containerId: stray.id, sandboxId: idOf("a") }]);
  });
});

describe("shim-hangs", () => {
  const sandbox = sandboxOf("a", { state: "ready" });
  const stopped = { ...shimOf("a"), isStopped: true } as const;
  const unanswered = [{ containerId: idOf("a"), pid: 0, status: "unanswered" }] as const;

  test.each<readonly [string, NodeParts, boolean]>([
    ["is stopped, and its task unanswered", { shims: [stopped], tasks: unanswered }, true],
    ["is stopped, and the list leaves its task out", { shims: [stopped] }, true],
    ["is not stopped: it may be busy", { shims: [shimOf("a")], tasks: unanswered }, false],
    [
      "was stopped and answers again",
      { shims: [stopped], tasks: [{ containerId: idOf("a"), pid: 9, status: "running" }] },
      false,
    ],
    [
      "is stopped, of a pod that is opted out",
      { shims: [stopped], sandboxes: [{ ...sandbox, annotations: { "unghost.dev/ignore": "true" } }] },
      false,
    ],
  ])("a shim that %s: %o", (_, parts, isFound) => {
    const { findings } = diagnosed({ sandboxes: [sandbox], records: [recordOf("a")], ...parts });

    expect(named({ findings })).toEqual(isFound ? ["shim-hangs/pid-700"] : []);
    if (isFound) expect(findings[0]).toMatchObject({ cure: [], treatment: { automatic: false } });
  });
});

describe("leftover-container", () => {
  const running = containerOf("a", { state: "running" });
  const node: NodeParts = {
    sandboxes: [sandboxOf("a", { state: "ready" })],
    records: [recordOf("a")],
    containers: [running],
  };

  test.each<readonly [string, NodeParts, boolean]>([
    ["kubelet does not have its pod", { pods: [] }, true],
    ["kubelet has its pod", { pods: ["a"] }, false],
    ["no source can be read", {}, false],
    ["it has ended", { pods: [], containers: [containerOf("a", { exit: FINISHED })] }, false],
    ["it belongs to no pod", { pods: [], containers: [{ ...running, labels: {} }] }, false],
    [
      "it is just being started",
      { pods: [], containers: [{ ...running, createdAt: BigInt(ago(1).getTime()) * 1_000_000n }] },
      false,
    ],
  ])("a running container, and %s: %o", (_, parts, isFound) => {
    const { findings } = diagnosed({ ...node, ...parts }, PATIENT);

    expect(named({ findings })).toEqual(isFound ? [`leftover-container/${running.id}`] : []);
    if (isFound) expect(findings[0]).toMatchObject({ cure: [], treatment: { automatic: false } });
  });

  const STATIC = { "kubernetes.io/config.source": "file" };
  const HASH = "0b3a8a6f2f3c4d5e6f708192a3b4c5d6";
  const staticPod = {
    sandboxes: [sandboxOf("a", { state: "ready", uid: HASH, annotations: STATIC })],
    containers: [{ ...running, labels: { "io.kubernetes.pod.uid": HASH } }],
  } as const;
  const api = (pods: readonly string[], kubeletUnread: boolean): Kubernetes => ({
    source: "api",
    pods: pods.map((uid) => ({ namespace: "default", name: "web", uid: podUid(uid) })),
    holds: { paused: false, node: false, namespaces: [] },
    ...(kubeletUnread ? { kubeletUnread } : {}),
  });

  test.each<readonly [string, Kubernetes, boolean]>([
    ["its manifest's hash is known", api([HASH], false), false],
    ["its hash is unknown", api([], false), true],
    ["kubelet could not be read", api([], true), false],
  ])("of a static pod, and %s", (_, kubernetes, isFound) => {
    const { findings } = diagnose(snapshotOf({ ...node, ...staticPod }, { kubernetes }), PATIENT);

    expect(findings).toHaveLength(isFound ? 1 : 0);
  });

  test.each<readonly [string, Partial<ContainerRecord>, readonly string[], boolean]>([
    ["that CRI does not list", {}, [], true],
    ["of a pod that is wanted", {}, ["u"], false],
    ["that is a pause container", { kind: "sandbox" }, [], false],
    ["that belongs to no pod", { labels: {} }, [], false],
    ["that is being created", { createdAt: ago(1) }, [], false],
  ])("a task %s: %o", (_, parts, pods, isFound) => {
    const labels = { "io.kubernetes.pod.uid": "u", "io.kubernetes.container.name": "main" };
    const record: ContainerRecord = { id: idOf("e"), kind: "container", createdAt: ago(600), labels, ...parts };
    const tasks = [{ containerId: record.id, pid: 7, status: "running" }] as const;

    const { findings } = diagnosed({ records: [record], tasks, pods }, PATIENT);

    const found = findings.filter(({ class: id }) => id === "leftover-container");
    expect(named({ findings: found })).toEqual(isFound ? [`leftover-container/${record.id}`] : []);
  });

  test("a pause container that runs beside it is not a second one", () => {
    const tasks = [{ containerId: idOf("a"), pid: 6, status: "running" }] as const;

    expect(named(diagnosed({ ...node, tasks, pods: [] }))).toEqual([`leftover-container/${running.id}`]);
  });

  test("each of several in one pod", () => {
    const second = containerOf("a", { ...running, id: containerOf("b").id, name: "side" });

    expect(named(diagnosed({ ...node, containers: [running, second], pods: [] }))).toHaveLength(2);
  });
});
