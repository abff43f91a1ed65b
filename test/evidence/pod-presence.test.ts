import { expect, test } from "vitest";
import { podPresence } from "../../src/evidence/pod-presence.ts";
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
