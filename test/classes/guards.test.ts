import { describe, expect, test } from "vitest";
import { isRecovering, sortSandboxes } from "../../src/evidence/candidates.ts";
import {
  finishedPhase,
  isHeldInCluster,
  isKubeletAlive,
  isStatic,
  isTerminating,
  nodeHolds,
  podPresence,
} from "../../src/evidence/pod-presence.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { absent, failed } from "../../src/host/source.ts";
import { podUid } from "../../src/node/types/ids.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import type { KnownPod, Kubernetes, Snapshot } from "../../src/node/types/snapshot.ts";
import {
  ago,
  containerOf,
  FINISHED,
  LOST,
  type NodeParts,
  PATIENT,
  pluginFor,
  recordOf,
  resultOf,
  type SandboxParts,
  sandboxOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

const A = sandboxOf("a");
const POD: KnownPod = { namespace: A.pod.namespace, name: A.pod.name, uid: A.pod.uid };
const OTHER: KnownPod = { ...POD, uid: podUid("b") };
const STATIC: SandboxParts = { annotations: { "kubernetes.io/config.source": "file" } };
const HOLDS = { paused: false, node: false, namespaces: [] };

function api(pods: readonly KnownPod[], more: object = {}): Kubernetes {
  return { source: "api", pods, holds: HOLDS, ...more };
}

function view(parts: NodeParts, sources: Partial<Snapshot> = {}) {
  return viewOf(snapshotOf(parts, sources), PATIENT);
}

describe("state of a pod in Kubernetes", () => {
  test.each<readonly [string, Kubernetes, SandboxParts, string]>([
    ["no source was asked", { source: "none" }, {}, "unasked"],
    ["the API has it", api([OTHER, POD]), {}, "known"],
    ["the API has others", api([OTHER]), {}, "gone"],
    ["the API may not have it yet", api([]), { createdSecondsAgo: 1 }, "known"],
    ["kubelet alone does not know the static pod", { source: "kubelet", pods: [] }, STATIC, "unasked"],
    ["kubelet alone does not know another pod", { source: "kubelet", pods: [] }, {}, "gone"],
    ["the API alone does not know the static pod", api([], { kubeletUnread: true }), STATIC, "unasked"],
    ["the API alone does not know another pod", api([], { kubeletUnread: true }), {}, "gone"],
    ["API and kubelet do not know the static pod", api([]), STATIC, "gone"],
  ])("%s", (_, kubernetes, parts, truth) => {
    expect(podPresence(sandboxOf("a", parts), view({}, { kubernetes }))).toBe(truth);
  });

  test.each<readonly [Kubernetes, string | undefined]>([
    [{ source: "none" }, undefined],
    [api([{ ...POD, phase: "Succeeded" }]), "Succeeded"],
    [
      api([
        { ...OTHER, phase: "Succeeded" },
        { ...POD, phase: "Failed" },
      ]),
      "Failed",
    ],
    [api([{ ...POD, phase: "Running" }]), undefined],
    [api([{ ...POD, phase: "Failed", terminating: true }]), undefined],
    [api([{ ...OTHER, phase: "Failed" }]), undefined],
  ])("phase of a finished pod, %j", (kubernetes, phase) => {
    expect(finishedPhase(A, view({}, { kubernetes }))).toBe(phase);
  });

  test.each<readonly [Kubernetes, boolean]>([
    [{ source: "none" }, false],
    [api([{ ...POD, terminating: true }]), true],
    [api([POD, { ...OTHER, terminating: true }]), false],
  ])("is being deleted, %j", (kubernetes, expected) => {
    expect(isTerminating(A, view({}, { kubernetes }))).toBe(expected);
  });

  test.each([
    ["file", true],
    ["http", true],
    ["api", false],
  ])("a pod of the source %s is static: %s", (source, expected) => {
    expect(isStatic({ annotations: { "kubernetes.io/config.source": source } })).toBe(expected);
  });
});

describe("opt-outs in the cluster", () => {
  test("count only when the API was read", () => {
    const holds = { paused: true, node: true, namespaces: ["default"] };
    expect(nodeHolds(view({}, { kubernetes: api([], { holds }) }))).toMatchObject({ paused: true, node: true });
    expect(nodeHolds(view({}, { kubernetes: { source: "kubelet", pods: [] } }))).toEqual({
      paused: false,
      node: false,
    });
    expect(isHeldInCluster(A.pod, view({}, { kubernetes: api([], { holds }) }))).toBe(true);
    expect(isHeldInCluster(A.pod, view({}, { kubernetes: { source: "none" } }))).toBe(false);
  });

  test.each<readonly [Kubernetes, boolean]>([
    [api([{ ...POD, ignored: true }]), true],
    [api([{ ...OTHER, ignored: true }, POD]), false],
    [{ source: "kubelet", pods: [{ ...POD, ignored: true }] }, true],
    [api([POD], { holds: { ...HOLDS, namespaces: ["other"] } }), false],
  ])("annotation on the pod itself, %j", (kubernetes, expected) => {
    expect(isHeldInCluster(A.pod, view({}, { kubernetes }))).toBe(expected);
  });
});

describe("a kubelet that may be recovering a sandbox", () => {
  const NEW = UPTIME_SECONDS - 599;
  const OLD = UPTIME_SECONDS - 600;

  test.each<readonly [string, NodeParts, Partial<Snapshot>, boolean]>([
    ["there is none", {}, {}, false],
    ["processes could not be read", { kubeletStarted: NEW }, { processes: failed("no /proc") }, false],
    ["it has just started", { kubeletStarted: NEW }, {}, true],
    ["its time is over", { kubeletStarted: OLD }, {}, false],
    ["its pod is gone", { kubeletStarted: NEW, pods: ["b"] }, {}, false],
    ["the uptime is unknown", { kubeletStarted: OLD }, { boot: absent("no") }, true],
  ])("%s", (_, parts, sources, expected) => {
    expect(isRecovering({ sandbox: A }, view({ pods: ["a"], ...parts }, sources))).toBe(expected);
  });

  test.each([
    [NEW, true],
    [OLD, false],
    [undefined, false],
  ])("the later start of runtime and kubelet counts: runtime at %s", (started, expected) => {
    const { runtime, ...whole } = snapshotOf({ pods: ["a"], kubeletStarted: OLD });
    const process = started === undefined ? {} : { process: { pid: 1, startedSecondsAfterBoot: started } };
    const { process: _old, ...rest } = runtime;
    expect(isRecovering({ sandbox: A }, viewOf({ ...whole, runtime: { ...rest, ...process } }, PATIENT))).toBe(
      expected,
    );
  });

  test("is running only when a process shows it", () => {
    expect(isKubeletAlive(view({ kubeletStarted: 1 }))).toBe(true);
    expect(isKubeletAlive(view({}))).toBe(false);
    expect(isKubeletAlive(view({}, { processes: failed("no /proc") }))).toBe(false);
  });
});

describe("reasons to keep a dead sandbox", () => {
  const lost = [containerOf("a", { exit: LOST })];

  function retained(parts: NodeParts, sources: Partial<Snapshot> = {}) {
    const { candidates } = sortSandboxes(view({ sandboxes: [A], ...parts }, sources));
    const [candidate] = candidates.filter(({ sandbox }) => sandbox.id === A.id);
    if (candidate === undefined) throw new Error("it is no candidate");
    return candidate.retained;
  }

  const successor = sandboxOf("b", { uid: "a", attempt: 1, state: "ready" });

  test("a newer attempt of its pod runs", () => {
    expect(retained({ sandboxes: [A, successor] })).toEqual({
      code: "successor-running",
      text: "the pod runs again under attempt 1; this one holds the containers behind kubectl logs --previous",
    });
  });

  test.each<readonly [string, NodeParts]>([
    ["its network is held", { pods: ["a"], containers: lost, results: [resultOf("a")] }],
    ["it has no container", { pods: ["a"] }],
    [
      "it was never completely created",
      { sandboxes: [sandboxOf("a", { createdAt: ZERO_TIME })], pods: ["a"], containers: lost },
    ],
    ["its pod is gone", { pods: ["b"], containers: lost }],
  ])("none when %s", (_, parts) => {
    expect(retained(parts)).toBeUndefined();
  });

  test("none when kubelet reports a failing stop, although a newer attempt runs", () => {
    const two = (value: number) => String(value).padStart(2, "0");
    const at = ago(30);
    const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
    const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.000000`;
    const report = `E${day} ${time}    4711 log.go:32] "StopPodSandbox from runtime service failed" err="rpc error: code = DeadlineExceeded desc = context deadline exceeded" podSandboxID="${A.id}"`;
    expect(retained({ sandboxes: [A, successor], logLines: [report] })).toBeUndefined();
  });

  test.each<readonly [string, NodeParts, Partial<Snapshot>, object]>([
    [
      "Kubernetes knows its pod",
      { pods: ["a"], containers: lost },
      {},
      {
        code: "pod-known",
        text: "Kubernetes still knows the pod, and its network is released; kubectl logs still reads its containers",
      },
    ],
    [
      "its pod failed, and it has containers",
      { containers: lost },
      { kubernetes: api([{ ...POD, phase: "Failed" }]) },
      {
        code: "pod-finished",
        text: "a finished pod: Kubernetes calls it Failed, and kubectl logs still reads its containers",
      },
    ],
    [
      "its pod failed, and it has none",
      {},
      { kubernetes: api([{ ...POD, phase: "Failed" }]) },
      { code: "pod-finished", text: "a finished pod: Kubernetes calls it Failed, and no pod waits for its name" },
    ],
    [
      "it is a static pod",
      { sandboxes: [sandboxOf("a", STATIC)], pods: ["a"] },
      {},
      { code: "static-pod", text: "a static pod: kubelet creates it again from its manifest" },
    ],
  ])("%s", (_, parts, sources, reason) => {
    expect(retained(parts, sources)).toEqual(reason);
  });

  test.each<readonly [string, SandboxParts, Kubernetes]>([
    ["was never completely created", { ...STATIC, createdAt: ZERO_TIME }, { source: "kubelet", pods: [POD] }],
    ["is gone from API and kubelet", STATIC, api([])],
  ])("not as a static pod when it %s", (_, parts, kubernetes) => {
    const kept = retained({ sandboxes: [sandboxOf("a", parts)], results: [resultOf("a")] }, { kubernetes });
    expect(kept?.code).not.toBe("static-pod");
  });

  test("a candidate that is not kept has no reason", () => {
    const { candidates } = sortSandboxes(view({ sandboxes: [A], containers: lost, results: [resultOf("a")] }));
    expect(candidates.map((one) => one.retained)).toEqual([undefined]);
  });
});

describe("proof of death in a finding", () => {
  function facts(parts: NodeParts, sources: Partial<Snapshot> = {}): readonly string[] {
    const { candidates } = sortSandboxes(view({ sandboxes: [A], ...parts }, sources));
    return candidates.flatMap(({ evidence }) => evidence.map(({ fact }) => fact));
  }

  test("lists the containers and how they ended", () => {
    const one = [containerOf("a", { exit: LOST })];
    expect(facts({})).toEqual([
      "listed as NotReady, with no container",
      "no shim and no process carries its id",
      "no live task",
    ]);
    expect(facts({ containers: one })[0]).toBe("listed as NotReady, with container main exited (exit 255, Unknown)");
    expect(facts({ containers: [...one, containerOf("a", { name: "b", exit: FINISHED })] })[0]).toBe(
      "listed as NotReady, with containers main exited (exit 255, Unknown), b exited (exit 0, Completed)",
    );
  });

  test("does not mention tasks when the runtime has none", () => {
    expect(facts({}, { containerd: absent("CRI-O") })).toHaveLength(2);
  });
});

describe("a plugin that works on a sandbox", () => {
  function kept(plugins: NodeParts["plugins"] & object) {
    return sortSandboxes(view({ sandboxes: [A], records: [recordOf("a")], plugins })).kept.map(
      ({ reason }) => reason.code,
    );
  }

  test.each([
    [599, ["network-teardown-in-flight"]],
    [600, []],
  ])("keeps it for the grace period and no longer: %d s", (seconds, codes) => {
    expect(kept([pluginFor("a", "DEL", seconds)])).toEqual(codes);
  });

  test("for ADD counts although another runs DEL", () => {
    expect(kept([pluginFor("a", "DEL", 5), pluginFor("a", "ADD", 5)])).toEqual(["network-setup-in-flight"]);
  });
});
