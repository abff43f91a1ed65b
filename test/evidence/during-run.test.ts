import { describe, expect, test } from "vitest";
import { type DiagnosisPolicy, duringRun } from "../../src/evidence/view.ts";
import { read } from "../../src/host/source.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { diagnosed } from "../support/diagnosed.ts";
import {
  AT_ONCE,
  ago,
  idOf,
  PATIENT,
  pluginFor,
  recordOf,
  snapshotOf,
  UPTIME_SECONDS,
} from "../support/snapshot-builder.ts";

/** The run's first scan, ten seconds before the snapshot of every test. */
const first: Pick<Snapshot, "boot"> = {
  boot: read({ id: "boot", uptimeSeconds: UPTIME_SECONDS - 10, startedAt: ago(UPTIME_SECONDS) }),
};
const now = snapshotOf();
const during = (policy: DiagnosisPolicy) => duringRun(policy, first, now);

describe("a later scan of a run without a grace period", () => {
  const rollback = { records: [recordOf("a")], plugins: [pluginFor("a", "DEL", 9)] };

  test("takes a plugin that started after the run for one in flight", () => {
    expect(diagnosed(rollback).findings.map((finding) => finding.class)).toEqual(["del-timeout-killed"]);
    expect(diagnosed(rollback, during(AT_ONCE)).findings).toEqual([]);
  });

  test("finds a plugin that hung before the run", () => {
    const hung = { records: [recordOf("a")], plugins: [pluginFor("a", "DEL", 11)] };
    expect(diagnosed(hung, during(AT_ONCE)).findings.map((finding) => finding.class)).toEqual(["del-timeout-killed"]);
  });

  test("ends neither a creation nor a lock holder that is younger than the run", () => {
    const statusHangs = { cri: read({ conditions: [], sandboxes: [], containers: [], statusHangsMs: 2000 }) };
    const plugins = [pluginFor("b", "ADD", 9)];
    const classes = (policy: DiagnosisPolicy) =>
      diagnosed({ plugins, leases: [{ id: idOf("b"), createdAt: ago(9) }] }, policy, statusHangs).findings;
    expect(classes(AT_ONCE).map((finding) => finding.class)).toContain("cni-lock-wedge");
    expect(classes(during({ ...AT_ONCE, abandonedGraceMs: 0 }))).toEqual([]);
  });
});

test("a grace period longer than the run stays, and so does one where the uptime is not known", () => {
  expect(during(PATIENT)).toEqual(PATIENT);
  expect(duringRun(AT_ONCE, undefined, now)).toEqual(AT_ONCE);
  expect(duringRun(AT_ONCE, first, { boot: { status: "absent", reason: "no /proc" } })).toEqual(AT_ONCE);
});
