import { expect, test } from "vitest";
import { deletionOf, kubeletUpMs, podPresence, whyUnasked } from "../../src/evidence/pod-presence.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { failed } from "../../src/host/source.ts";
import { podUid } from "../../src/node/types/ids.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import {
  AT_ONCE,
  NOW,
  type NodeParts,
  PATIENT,
  sandboxOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

test.each([
  ["gone", "30 s after the sandbox was created", 30_000, PATIENT],
  ["known", "a moment before that: the API server's cache may be behind", 29_999, PATIENT],
  ["gone", "with --min-age 0s at once", 0, AT_ONCE],
] as const)("a pod that Kubernetes does not list is %s %s", (presence, _when, ageMs, policy) => {
  const sandbox = { ...sandboxOf("a"), createdAt: BigInt(NOW.getTime() - ageMs) * 1_000_000n };
  const view = viewOf(snapshotOf({ sandboxes: [sandbox], pods: ["b"] }), policy);

  expect(podPresence(sandbox, view)).toBe(presence);
});

test.each([
  [{ source: "none", unused: true }, "Kubernetes is not asked (--no-kube)"],
  [{ source: "none", error: "connection refused" }, "Kubernetes could not be asked: connection refused"],
  [{ source: "none" }, "this node has neither credentials for an API server nor kubelet's directories"],
  [{ source: "kubelet", pods: [] }, "kubelet and API server were not both read"],
] as const)("why Kubernetes was not asked: %j", (kubernetes, reason) => {
  expect(whyUnasked({ snapshot: { ...snapshotOf({}), kubernetes } })).toContain(reason);
});

test.each([
  ["of its manifest", "kubelet", "u1", "terminating"],
  ["of its mirror", "kubelet", "mirror", "terminating"],
  ["of a pod that is not deleted", "kubelet", "u2", undefined],
  ["that the API server does not list", "api", "u3", "gone"],
  ["that kubelet does not have", "kubelet", "u3", undefined],
] as const)("whether a pod is deleted, by the uid %s, from %s", (_which, source, uid, deletion) => {
  const pods = [
    { namespace: "default", name: "other", uid: podUid("u2"), objectUid: "mirror of u2" },
    { namespace: "default", name: "web", uid: podUid("u1"), objectUid: "mirror", terminating: true },
  ];
  const holds = { paused: false, node: false, namespaces: [] };
  const kubernetes = source === "api" ? { source, nodeName: "edge", pods, holds } : { source, pods };
  const view = viewOf(snapshotOf({}, { kubernetes }), PATIENT);

  expect(deletionOf({ namespace: "default", name: "unknown", uid }, view)).toBe(deletion);
});

test.each([
  ["the API server does not list it, and kubelet's directories are unread", { source: "api", kubeletUnread: true }],
  ["neither API server nor kubelet was asked", { source: "none" }],
] as const)("whether a pod is deleted is unknown when %s", (_why, more) => {
  const holds = { paused: false, node: false, namespaces: [] };
  const kubernetes = { nodeName: "edge", pods: [], holds, ...more };
  const view = viewOf(snapshotOf({}, { kubernetes }), PATIENT);

  expect(deletionOf({ namespace: "default", name: "web", uid: "u1" }, view)).toBeUndefined();
});

test.each([
  ["web", "terminating"],
  ["other", "gone"],
] as const)("a pod without a uid is known by its name: %s is %s", (name, deletion) => {
  const pods = [{ namespace: "default", name: "web", uid: podUid("u1"), terminating: true }];
  const holds = { paused: false, node: false, namespaces: [] };
  const view = viewOf(snapshotOf({}, { kubernetes: { source: "api", nodeName: "edge", pods, holds } }), PATIENT);

  expect(deletionOf({ namespace: "default", name }, view)).toBe(deletion);
});

test("kubelet has run since it started, by the clock of the boot", () => {
  expect(kubeletUpMs({ snapshot: snapshotOf({ kubeletStarted: UPTIME_SECONDS - 90 }) })).toBe(90_000);
});

test.each<readonly [string, NodeParts, Partial<Snapshot>]>([
  ["no kubelet runs", {}, {}],
  ["the processes are unknown", {}, { processes: failed("no /proc") }],
  ["the boot is unknown", { kubeletStarted: 10 }, { boot: failed("no /proc") }],
])("how long kubelet runs is -1 when %s", (_why, parts, sources) => {
  expect(kubeletUpMs({ snapshot: snapshotOf(parts, sources) })).toBe(-1);
});
