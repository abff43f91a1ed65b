import type { NodeReport } from "../../src/report/node-report.ts";

/** The report of a healthy node. */
export const HEALTHY: NodeReport = {
  apiVersion: "unghost.dev/v1",
  kind: "NodeReport",
  node: "worker-1",
  observedAt: "2026-01-01T00:00:00.000Z",
  verdict: "healthy",
  runtime: {
    name: "containerd",
    version: "1.7.0",
    endpoint: "unix:///run/containerd/containerd.sock",
    reachable: true,
  },
  kubernetes: { source: "none" },
  boot: { id: "b", startedAt: "" },
  sandboxes: { total: 1, ready: 1, notReady: 0 },
  findings: [],
  kept: [],
  problems: [],
  advice: [],
};
