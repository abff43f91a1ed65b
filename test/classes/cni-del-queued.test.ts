import { describe, expect, test } from "vitest";
import { diagnose } from "../../src/diagnose/diagnose.ts";
import { idOf, PATIENT, snapshotOf } from "../support/snapshot-builder.ts";

const MINUTE_MS = 60_000;

function diagnosed(waiting: number | undefined, ageMs = 0, words = "dial unix /x: connect: connection refused") {
  const snapshot = snapshotOf({});
  const since = new Date(snapshot.observedAt.getTime() - ageMs);
  const oldest = { sandboxId: idOf("a"), interface: "eth0", plugin: "kube-ovn", since, words };
  const guardQueue = waiting === undefined ? {} : { guardQueue: { waiting, oldest } };
  return diagnose({ ...snapshot, cni: { ...snapshot.cni, ...guardQueue } }, PATIENT);
}

describe("cni-del-queued", () => {
  test.each([
    { waiting: undefined, ageMs: 0, severity: undefined },
    { waiting: 1, ageMs: MINUTE_MS, severity: "info" },
    { waiting: 256, ageMs: 11 * MINUTE_MS, severity: "warning" },
    { waiting: 1, ageMs: -60 * MINUTE_MS, severity: "info" },
  ])("$waiting DELs, the oldest for $ageMs ms: $severity", ({ waiting, ageMs, severity }) => {
    expect(diagnosed(waiting, ageMs).findings.map((finding) => finding.severity)).toEqual(
      severity === undefined ? [] : [severity],
    );
  });

  test("is one finding whatever their number, with the plugin's own words, and nothing to heal", () => {
    const diagnosis = diagnosed(72, 3 * MINUTE_MS);
    const [finding] = diagnosis.findings;

    expect(diagnosis.findings).toHaveLength(1);
    expect(finding).toMatchObject({ class: "cni-del-queued", subject: { type: "node", name: "cni-queue" } });
    expect(finding?.summary).toContain("72 DELs that kube-ovn failed, the oldest for 3m");
    expect(finding?.evidence.map(({ fact }) => fact)).toContain("kube-ovn: dial unix /x: connect: connection refused");
    expect(finding).toMatchObject({ treatment: { automatic: false }, cure: [] });
  });
});
