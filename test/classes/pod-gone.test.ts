import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { ContainerExit, Sandbox } from "../../src/node/types/runtime.ts";
import type { KnownPod, Kubernetes } from "../../src/node/types/snapshot.ts";
import {
  AT_ONCE,
  ago,
  containerOf,
  FINISHED,
  idOf,
  PATIENT,
  recordOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

const GONE = `pod-gone/${idOf("a")}`;
const STATIC = { annotations: { "kubernetes.io/config.source": "file" } };
const POD: KnownPod = { namespace: "default", name: "pod-a", uid: podUid("a") };
const api: Kubernetes = { source: "api", pods: [], holds: { paused: false, node: false, namespaces: [] } };
const known: Kubernetes = { ...api, pods: [POD] };
const recreated: Kubernetes = { ...api, pods: [{ ...POD, uid: podUid("b") }] };
const endedLongAgo: ContainerExit = { ...FINISHED, finishedAt: BigInt(ago(3000).getTime()) * 1_000_000n };

function found(kubernetes: Kubernetes, sandbox: Partial<Sandbox> = {}, exit = endedLongAgo, policy = PATIENT) {
  const parts = {
    sandboxes: [sandboxOf("a", { createdSecondsAgo: 3500, ...sandbox })],
    records: [recordOf("a")],
    containers: [containerOf("a", { exit, createdAt: 1n })],
  };
  return diagnose(snapshotOf(parts, { kubernetes }), policy);
}

describe("an orderly stopped sandbox whose pod", () => {
  test.each<readonly [string, Kubernetes, Partial<Sandbox>, boolean]>([
    ["is gone from the API", api, {}, true],
    ["was created again with another uid", recreated, {}, true],
    ["still exists", known, {}, false],
    ["is gone according to kubelet alone", { source: "kubelet", pods: [] }, {}, false],
    ["could not be read", { source: "none" }, {}, false],
    ["is static, and gone from API and kubelet", api, STATIC, true],
    ["is static, has no mirror pod, and kubelet could not be read", { ...api, kubeletUnread: true }, STATIC, false],
    ["is static, and only kubelet could be read", { source: "kubelet", pods: [] }, STATIC, false],
  ])("%s", (_what, kubernetes, sandbox, isFound) => {
    expect(found(kubernetes, sandbox).findings.map(({ id }) => id)).toEqual(isFound ? [GONE] : []);
  });

  test("is left to kubelet while its end is younger than the minimum age", () => {
    const justEnded = { ...FINISHED, finishedAt: BigInt(ago(60).getTime()) * 1_000_000n };

    expect(found(api, {}, justEnded).findings).toEqual([]);
    expect(found(api, {}, justEnded, AT_ONCE).findings.map(({ id }) => id)).toEqual([GONE]);
  });

  test("blocks nothing, and the finding names the state of its pod", () => {
    const [finding] = found(recreated).findings;

    expect([finding?.blocks, finding?.blockedPods]).toEqual([[], []]);
    expect(finding?.evidence).toContainEqual({
      source: "kubernetes",
      fact: "the pod default/pod-a was made again: its uid is b now, not a",
    });
  });
});
