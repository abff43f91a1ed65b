import * as v from "valibot";
import { openKubeExporter } from "../../../src/agent/kube/kube-exporter.ts";
import type { AgentState, Sighting } from "../../../src/agent/state/state.ts";
import { openStore, type Store } from "../../../src/agent/state/store.ts";
import { GHOST_REPORTS, type GhostReport, GhostReportSchema } from "../../../src/kube/ghost-report.ts";
import type { NodeReport } from "../../../src/report/node-report.ts";
import { type MemoryCluster, memoryCluster } from "../../support/memory-cluster.ts";
import { type VirtualTime, virtualTime } from "../../support/virtual-time.ts";
import { freshState, scanOf } from "../metrics/agent-state.ts";

export const NODE = "/api/v1/nodes/n1";
export const REPORT = `${GHOST_REPORTS}/n1`;

/** An agent's state, and its cluster, in virtual time. */
export interface ShownAgent {
  readonly time: VirtualTime;
  readonly cluster: MemoryCluster;
  readonly store: Store;
  readonly warnings: string[];
  /** A scan that ended now, with these findings. */
  readonly scanned: (sightings?: readonly Sighting[], parts?: Partial<NodeReport>) => void;
  readonly change: (parts: Partial<AgentState>) => void;
  /** Publishes the state from now on; the test has to close it. */
  readonly show: () => { close(): Promise<void> };
  readonly condition: () => Record<string, string> | undefined;
  /** Events in the cluster, by reason and object. */
  readonly events: () => readonly Record<string, unknown>[];
  /** Requests that change something, since the last call; without those of the GhostReport. */
  readonly writes: () => readonly string[];
  /** The GhostReport in the cluster. */
  readonly report: () => GhostReport | undefined;
}

const KUBELETS_OWN = {
  type: "Ready",
  status: "True",
  reason: "KubeletReady",
  message: "kubelet is posting ready status",
};

export function shownAgent(): ShownAgent {
  const time = virtualTime();
  const cluster = memoryCluster();
  const store = openStore(freshState());
  const warnings: string[] = [];
  cluster.store.put(NODE, { metadata: { name: "n1", uid: "u-1" }, status: { conditions: [KUBELETS_OWN] } });
  cluster.store.put("/api/v1/namespaces/default", { metadata: { name: "default" } });

  return {
    time,
    cluster,
    store,
    warnings,
    scanned: (sightings = [], parts = {}) => {
      const verdict = sightings.length === 0 ? "healthy" : "ghosts";
      const report = { verdict, kubernetes: { source: "api" }, ...parts } as const;
      store.update((state) => ({ ...state, sightings, scan: scanOf({ report, endedAtMs: time.clock() }) }));
    },
    change: (parts) => store.update((state) => ({ ...state, ...parts })),
    show: () =>
      openKubeExporter({
        watched: store,
        openCluster: cluster.open,
        nodeName: () => "n1",
        timing: time.timing(),
        warn: (...parts) => warnings.push(parts.join(": ")),
      }),
    condition: () => {
      const status = cluster.store.get(NODE)?.["status"] as { conditions: Record<string, string>[] };
      return status.conditions.find(({ type }) => type === "GhostSandboxes");
    },
    events: () =>
      cluster.store
        .entries()
        .filter(([path]) => path.includes("/events/"))
        .map(([, object]) => object),
    writes: () => {
      const all = cluster.requests.splice(0);
      return all.filter((request) => !request.startsWith("GET") && !request.includes("/ghostreports/"));
    },
    report: () => {
      const object = cluster.store.get(REPORT);
      return object === undefined ? undefined : v.parse(GhostReportSchema, object);
    },
  };
}
