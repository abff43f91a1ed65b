import { describe, expect, test } from "vitest";
import { sortSandboxes } from "../../src/evidence/candidates.ts";
import type { KeptCode } from "../../src/evidence/finding.ts";
import { viewOf } from "../../src/evidence/view.ts";
import type { ContainerExit } from "../../src/node/types/runtime.ts";
import type { KnownPod, Kubernetes } from "../../src/node/types/snapshot.ts";
import {
  containerOf,
  FINISHED,
  LOST,
  type NodeParts,
  PATIENT,
  resultOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const SANDBOX = sandboxOf("a");
const POD: KnownPod = { namespace: SANDBOX.pod.namespace, name: SANDBOX.pod.name, uid: SANDBOX.pod.uid };

function api(...pods: readonly KnownPod[]): Kubernetes {
  return { source: "api", pods, holds: { paused: false, node: false, namespaces: [] } };
}

const SENTENCES: Partial<Readonly<Record<KeptCode, string>>> = {
  "containers-finished": "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them",
  "container-ends-unread": "how its containers ended could not be read: it may be a finished pod",
  "pod-finished": "a finished pod: Kubernetes calls it Failed, and kubectl logs still reads its containers",
  "left-to-kubelet":
    "its pod is unknown (no API server, no kubelet directory), and its network is released; the rest is left to kubelet, which runs",
};

describe("reasons to keep a dead sandbox", () => {
  test.each<[string, Kubernetes, ContainerExit | undefined, KeptCode | undefined]>([
    ["a finished pod, without API server and kubelet", { source: "none" }, FINISHED, "containers-finished"],
    ["a finished pod that kubelet has dropped", { source: "kubelet", pods: [] }, FINISHED, "containers-finished"],
    ["a finished pod that exists in the cluster", api({ ...POD, phase: "Succeeded" }), FINISHED, "containers-finished"],
    ["a finished pod that is gone from the cluster: nothing", api(), FINISHED, undefined],
    ["a pod that failed with its node", api({ ...POD, phase: "Failed" }), LOST, "pod-finished"],
    [
      "a pod that failed and is being deleted: nothing",
      api({ ...POD, phase: "Failed", terminating: true }),
      LOST,
      undefined,
    ],
    ["a pod whose end could not be read", { source: "none" }, undefined, "container-ends-unread"],
    ["a pod whose end could not be read, gone from the cluster: nothing", api(), undefined, undefined],
    ["a pod that should run again: nothing", api({ ...POD, phase: "Running" }), LOST, undefined],
  ])("%s", (_what, kubernetes, exit, code) => {
    const containers = [containerOf("a", exit === undefined ? {} : { exit })];
    const results = [resultOf("a")];
    const view = viewOf(snapshotOf({ sandboxes: [SANDBOX], containers, results }, { kubernetes }), PATIENT);

    const [candidate] = sortSandboxes(view).candidates;

    expect(candidate?.sandbox.id).toBe(SANDBOX.id);
    expect(candidate?.retained).toEqual(code && { code, text: SENTENCES[code] });
  });

  test.each<[string, NodeParts, KeptCode | undefined]>([
    ["with a running kubelet", { kubeletStarted: 1 }, "left-to-kubelet"],
    ["with no kubelet: nothing", {}, undefined],
    ["whose network is still held: nothing", { kubeletStarted: 1, results: [resultOf("a")] }, undefined],
    ["without a directory of a running kubelet: nothing", { kubeletStarted: 1, pods: ["b"] }, undefined],
  ])("an unknown pod, %s", (_what, parts, code) => {
    const containers = [containerOf("a", { exit: LOST })];
    const snapshot = snapshotOf({ sandboxes: [SANDBOX], containers, ...parts });

    const [candidate] = sortSandboxes(viewOf(snapshot, PATIENT)).candidates;

    expect(candidate?.retained).toEqual(code && { code, text: SENTENCES[code] });
  });
});
