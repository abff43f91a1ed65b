import { describe, expect, test } from "vitest";
import { conditionOf } from "../../src/agent/kube/condition.ts";
import { publishedChange } from "../../src/agent/kube/event-content.ts";
import { pageVerdict } from "../../src/agent/page/verdict.ts";
import { readState } from "../../src/agent/page/wire.ts";
import { stateJson } from "../../src/agent/state/state-json.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { oneLine } from "../../src/report/one-line.ts";
import { commonCause } from "../../src/report/pending.ts";
import { renderTable } from "../../src/report/table.ts";
import { freshState, scanOf } from "../agent/metrics/agent-state.ts";
import { HEALTHY } from "../support/node-report.ts";

const POD = { namespace: "default", name: "web-0", uid: "u" };

const DEGRADED = {
  ...HEALTHY,
  verdict: "degraded",
  podCreation: {
    able: "no",
    lastFailure: { code: "deadline-exceeded", pod: POD, message: "context deadline exceeded" },
    blockedPods: [POD],
  },
  pending: [
    {
      reason: "creation-retrying",
      pod: POD,
      sandboxId: "a".repeat(64),
      since: "2025-12-31T23:58:00.000Z",
      waitsFor: { kind: "plugin", pid: 12, command: "/opt/cni/bin/multus-shim", cniCommand: "ADD" },
      reported: [
        {
          by: "kubelet",
          code: "deadline-exceeded",
          operation: "create",
          count: 3,
          message: "context deadline exceeded",
        },
      ],
      becomesFindingAt: "2026-01-01T00:00:20.000Z",
    },
    { reason: "creation-in-flight", pod: { ...POD, name: "web-1" }, since: "2025-12-31T23:59:50.000Z", reported: [] },
  ],
} satisfies NodeReport;

test("equal failures of one plugin have one cause", () => {
  const message = 'failed to setup network for sandbox "x": plugin type="tuning" failed (add): no such sysctl';
  const failing = (name: string) => ({
    reason: "creation-failing" as const,
    pod: { ...POD, name },
    since: "2025-12-31T23:58:00.000Z",
    reported: [
      { by: "kubelet" as const, code: "plugin-failed" as const, operation: "create" as const, count: 1, message },
    ],
  });
  const pending = ["a", "b", "c"].map(failing);

  expect(commonCause(pending)).toMatch(/^one cause: plugin tuning fails for 3 of 3; .*conflist/);
  expect(commonCause(pending.slice(1))).toBeUndefined();
});

describe("a degraded node", () => {
  test("starts its table with the degraded pods, and lists what is pending", () => {
    const table = renderTable(DEGRADED, { colour: false, columns: 400, verbose: false, titleOf: (id) => id });

    expect(table.split("\n").slice(0, 2)).toEqual([
      "NO NEW PODS START  this node cannot create pods; waiting: default/web-0; last failure (deadline-exceeded): context deadline exceeded",
      expect.stringMatching(/^DEGRADED {2}no ghosts on worker-1, but 1 failure reported/),
    ]);
    expect(table).toContain(
      "default/web-0: sandbox creation retried after a failure for 2m, waits for pid 12 (/opt/cni/bin/multus-shim); kubelet reported deadline-exceeded 3 times: context deadline exceeded; becomes a finding in 20s",
    );
    expect(table).toContain("default/web-1: sandbox creation in flight for 10s");
  });

  test("is one line that node-problem-detector does not cut", () => {
    expect(oneLine(DEGRADED)).toBe("degraded: 1 creation-retrying; no pods start");
  });

  test("has a bad condition with the pods and without ages, and an event", () => {
    const state = freshState({ scan: scanOf({ endedAtMs: 0, report: DEGRADED }) });

    const message =
      "This node cannot create pods; 1 creation-retrying; blocked: default/web-0; reported: deadline-exceeded";
    expect(conditionOf(state, 0)).toEqual({ status: "True", reason: "PodsBlocked", message });
    expect(publishedChange({ kind: "degraded", report: DEGRADED })).toEqual({
      reason: "PodsBlocked",
      class: "degraded",
      message,
    });
  });

  test("has a bad status page", () => {
    const state = readState(stateJson(freshState({ scan: scanOf({ report: DEGRADED }) })));

    expect(pageVerdict(state)).toMatchObject({ tone: "bad", headline: "No new pods start" });
  });
});

describe("pods whose creations wait for the same", () => {
  const creation = (name: string, pid: number) => ({
    reason: "creation-in-flight" as const,
    pod: { ...POD, name },
    since: "2025-12-31T23:59:50.000Z",
    waitsFor: { kind: "plugin" as const, pid, command: "/opt/cni/bin/multus-shim", cniCommand: "ADD" },
    reported: [],
    becomesFindingAt: "2026-01-01T00:09:50.000Z",
  });
  const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
  const report = { ...HEALTHY, pending: names.map((name, index) => creation(name, 100 + index)) } satisfies NodeReport;
  const options = { colour: false, columns: 400, titleOf: (id: string) => id };

  test("share a line that names them", () => {
    const table = renderTable(report, { ...options, verbose: false });

    expect(table).toContain(
      "Pending: 8\n  default/a: sandbox creation in flight for 10s, waits for pid 100 (/opt/cni/bin/multus-shim); becomes a finding in 9m50s; like it: default/b, default/c, default/d, default/e, default/f and 2 more\n",
    );
    expect(table).not.toContain("… and");
  });

  test("have a line each with -v, and what can be done before they become findings", () => {
    const table = renderTable(report, { ...options, verbose: true });

    expect(table.match(/waits for pid/g)).toHaveLength(names.length);
    expect(table).toContain("heal it before that: unghost heal --inflight-grace 0s --dry-run\n");
  });

  test("keep lines of their own where something is reported about them", () => {
    const reported = DEGRADED.pending[0]?.reported ?? [];
    const pending = report.pending.map((one) => ({ ...one, reported }));

    expect(renderTable({ ...report, pending }, { ...options, verbose: false })).not.toContain("like it");
  });

  test("without a grace there is nothing to heal before its time", () => {
    const pending = report.pending.map((one) => ({ ...one, becomesFindingAt: undefined }));

    expect(renderTable({ ...report, pending }, { ...options, verbose: true })).not.toContain("before that");
  });
});
