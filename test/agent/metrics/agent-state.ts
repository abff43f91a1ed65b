import {
  type AgentState,
  initialState,
  type NodeCounts,
  type ScanState,
  type Sighting,
  type Standing,
} from "../../../src/agent/state/state.ts";
import type { NodeReport } from "../../../src/report/node-report.ts";

/** The state of an agent at its start. */
export function freshState(parts: Partial<AgentState> = {}): AgentState {
  return { ...initialState("node", "1.2.3", []), startedAt: new Date("2026-03-01T12:00:00Z"), runs: [], ...parts };
}

export const NO_COUNTS: NodeCounts = {
  cacheFiles: [],
  cniQueue: 0,
  leases: [],
  leftoverContainers: 0,
  volumeAttachmentsStuck: 0,
};

interface ScanParts extends Partial<Omit<ScanState, "report">> {
  readonly report?: Partial<NodeReport>;
}

export function scanOf(parts: ScanParts = {}): ScanState {
  return { counts: NO_COUNTS, seconds: 0.2, endedAtMs: performance.now(), ...parts, report: reportOf(parts.report) };
}

function reportOf(parts: Partial<NodeReport> = {}): NodeReport {
  return {
    apiVersion: "unghost.dev/v1",
    kind: "NodeReport",
    node: "node",
    observedAt: "2026-03-01T12:01:00.000Z",
    verdict: "healthy",
    runtime: {
      name: "containerd",
      version: "2.3.4",
      endpoint: "unix:///run/containerd/containerd.sock",
      reachable: true,
    },
    kubernetes: { source: "none" },
    boot: { id: "boot", startedAt: "2026-03-01T11:00:00.000Z" },
    sandboxes: { total: 0, ready: 0, notReady: 0 },
    findings: [],
    kept: [],
    problems: [],
    advice: [],
    ...parts,
  };
}

export function sightingOf(classId: string, firstSeenMs = 0, standing: Standing = { kind: "healing" }): Sighting {
  return {
    finding: {
      id: `${classId}/a`,
      class: classId,
      severity: "critical",
      subject: { type: "sandbox", sandboxId: "a".repeat(64) },
      summary: "a sandbox is stuck",
      evidence: [{ source: "cri", fact: "it is listed" }],
      blocks: [],
      treatment: { automatic: true, reversible: true, steps: [] },
    },
    firstSeenAt: new Date("2026-03-01T12:00:30Z"),
    firstSeenMs,
    standing,
    attempts: 0,
  };
}
