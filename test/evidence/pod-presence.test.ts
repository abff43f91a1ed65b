import { expect, test } from "vitest";
import { podPresence, whyUnasked } from "../../src/evidence/pod-presence.ts";
import { viewOf } from "../../src/evidence/view.ts";
import { AT_ONCE, NOW, PATIENT, sandboxOf, snapshotOf } from "../support/snapshot-builder.ts";

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
