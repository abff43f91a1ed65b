import { describe, expect, test } from "vitest";
import { sortSandboxes } from "../../src/evidence/candidates.ts";
import { podPresence } from "../../src/evidence/pod-presence.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Sandbox } from "../../src/node/types/runtime.ts";
import type { Holds, KnownPod, Kubernetes } from "../../src/node/types/snapshot.ts";
import { ago, idOf, PATIENT, snapshotOf } from "../support/snapshot-builder.ts";

const NO_HOLDS: Holds = { paused: false, node: false, namespaces: [] };
const WEB: KnownPod = { namespace: "default", name: "web", uid: podUid("u1"), phase: "Running" };

function sandboxMade(secondsAgo: number): Sandbox {
  return {
    id: idOf("a"),
    pod: { namespace: "default", name: "web", uid: podUid("u1"), attempt: 0 },
    state: "notReady",
    createdAt: BigInt(ago(secondsAgo).getTime()) * 1_000_000n,
    labels: {},
    annotations: {},
  };
}

function viewWith(kubernetes: Kubernetes, sandbox: Sandbox) {
  return viewOf(snapshotOf({ sandboxes: [sandbox] }, { kubernetes }), PATIENT);
}

describe("opt-outs in the cluster", () => {
  test.each<[string, Partial<Holds>, Partial<KnownPod>, boolean]>([
    ["nothing", {}, {}, false],
    ["the pod", {}, { ignored: true }, true],
    ["another pod", {}, { ignored: true, uid: podUid("u2") }, false],
    ["its namespace", { namespaces: ["default"] }, {}, true],
    ["another namespace", { namespaces: ["other"] }, {}, false],
    ["the node", { node: true }, {}, true],
    ["the node as paused, which stops healing and not scanning", { paused: true }, {}, false],
  ])("%s", (_what, holds, pod, kept) => {
    const kubernetes: Kubernetes = { source: "api", pods: [{ ...WEB, ...pod }], holds: { ...NO_HOLDS, ...holds } };

    const sorted = sortSandboxes(viewWith(kubernetes, sandboxMade(3000)));

    expect(sorted.kept.map(({ reason }) => reason.code)).toEqual(kept ? ["opted-out"] : []);
  });
});

describe("a pod that the cluster does not list", () => {
  test.each([
    ["is gone", 3000, "gone"],
    ["may be too new for the server's cache", 5, "known"],
  ] as const)("%s", (_what, secondsAgo, truth) => {
    const sandbox = sandboxMade(secondsAgo);

    expect(podPresence(sandbox, viewWith({ source: "api", pods: [], holds: NO_HOLDS }, sandbox))).toBe(truth);
  });
});
