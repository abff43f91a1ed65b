import type { ObserveNodeOptions } from "../diagnose/observe-node.ts";
import { describeError } from "../host/source.ts";
import {
  type ClusterCredentials,
  type ClusterPlaces,
  clusterCredentials,
  clusterOpener,
  type OpenCluster,
} from "../kube/cluster-credentials.ts";
import type { GhostHealSpec, HealAnswer } from "../kube/ghost-heal.ts";
import type { ClusterMirror } from "../kube/mirror.ts";
import type { Kubernetes, Snapshot } from "../node/types/snapshot.ts";
import type { PlannedAction } from "../plan/plan.ts";
import type { FleetAnswer } from "./limits/gate.ts";
import type { ClusterUse } from "./limits/timing.ts";
import type { AgentPolicy } from "./policy/agent-policy.ts";
import type { BreakerState } from "./state/state.ts";
import type { Store } from "./state/store.ts";

interface ClusterSideOptions extends Pick<ObserveNodeOptions, "node" | "timeoutMs">, Pick<ClusterUse, "warn"> {
  readonly store: Store;
  /** Undefined if the cluster is not used. */
  readonly places: ClusterPlaces | undefined;
  readonly policy: () => AgentPolicy;
  /** The cluster's state of this node has changed. */
  readonly onChange: () => void;
  /** What an operator asks of this node. */
  readonly answer: (spec: GhostHealSpec) => Promise<HealAnswer>;
}

const GO: FleetAnswer = { kind: "go", release: () => Promise.resolve() };

/** All parts of the agent that use the cluster. None of them is needed for a node to heal. */
export function clusterSide(options: ClusterSideOptions) {
  const { store, places } = options;
  const open = places === undefined ? undefined : clusterOpener(places);
  const logPodSource = logPodSourceChanges(options.warn);
  let nodeName = options.node;
  let isAnswering = false;
  /** Only an answer of the API has proven that the cluster's node of this name is this machine. */
  let isProven = false;
  /** By the last scan that the API answered. */
  let maintenance: string | undefined;
  let opening: Promise<void> | undefined;
  let opened: Awaited<ReturnType<typeof openAll>> | undefined;

  /** A booting node gets its credentials after its agent started: each scan checks for them until they exist. */
  async function openOnce(): Promise<void> {
    if (opening === undefined && places !== undefined && open !== undefined) {
      const credentials = clusterCredentials(places);
      if (credentials !== undefined) opening = tryToOpen(open, credentials);
    }
    await opening;
  }

  async function tryToOpen(openCluster: OpenCluster, credentials: ClusterCredentials): Promise<void> {
    try {
      opened = await openAll(openCluster, credentials);
    } catch (error) {
      const failed = "watching the cluster failed; each scan queries it, events and condition are off";
      options.warn(failed, describeError(error));
    }
  }

  async function openAll(openCluster: OpenCluster, { credentials, readText }: ClusterCredentials) {
    // Loaded on demand, to save memory on a node without a cluster.
    const [
      { openClusterMirror },
      { openFleetGate },
      { openKubeExporter },
      { openHealRequests },
      { REAL_TIMING: timing },
    ] = await Promise.all([
      import("../kube/mirror.ts"),
      import("./limits/gate.ts"),
      import("./kube/kube-exporter.ts"),
      import("./requests/heal-requests.ts"),
      import("./limits/timing.ts"),
    ]);
    const { node, timeoutMs, warn } = options;
    const mirror = openClusterMirror({ credentials, readText, node, limits: { timeoutMs } });
    mirror.onChange(options.onChange);
    const use = { openCluster, nodeName: () => nodeName, timing, warn };
    // A node may read neither Leases of the fleet nor requests: each try would be refused.
    const isKubelet = credentials.kind === "kubelet";
    const access = { credentials, readText, node, limits: { timeoutMs } };
    return {
      mirror,
      gate: isKubelet ? undefined : openFleetGate({ ...use, policy: () => options.policy().fleet, onBreaker }),
      requests: isKubelet
        ? undefined
        : openHealRequests({ ...use, node: access, isProven: () => isProven, answer: options.answer }),
      exporter: openKubeExporter({ ...use, watched: store }),
    };
  }

  function onBreaker(breaker: BreakerState): void {
    store.update((state) => ({ ...state, breaker }));
    store.publish({ kind: "breaker", breaker });
  }

  // An API that did not answer the last scan is not asked again here; an open breaker stays open.
  async function askFleet(actions: readonly PlannedAction[]): Promise<FleetAnswer> {
    const gate = opened?.gate;
    if (gate === undefined || !(isAnswering || gate.breaker().open)) return GO;
    return await gate.ask(actions);
  }

  return {
    /** For steps that change something in the cluster. */
    open,
    /** The cluster's state, kept current by watches; undefined while there are no credentials. */
    mirror: async (): Promise<ClusterMirror | undefined> => {
      await openOnce();
      return opened?.mirror;
    },
    gate: async (actions: readonly PlannedAction[]): Promise<FleetAnswer> => {
      if (maintenance === undefined) return await askFleet(actions);
      const { askInMaintenance } = await import("./limits/gate.ts");
      return await askInMaintenance(actions, maintenance, askFleet);
    },
    /** Called with the snapshot of each scan. */
    saw: ({ kubernetes }: Pick<Snapshot, "kubernetes">): void => {
      logPodSource(kubernetes);
      isAnswering = kubernetes.source === "api";
      maintenance = kubernetes.source === "api" ? kubernetes.holds.maintenance : undefined;
      if (kubernetes.source === "api" && kubernetes.nodeName !== undefined) nodeName = kubernetes.nodeName;
      if (isProven || kubernetes.source !== "api") return;
      isProven = true;
      opened?.requests?.check();
    },
    close: async (): Promise<void> => {
      await opening;
      await opened?.requests?.close();
      opened?.mirror.close();
      await Promise.all([opened?.gate?.close(), opened?.exporter.close()]);
    },
  };
}

/** Logs the source of this node's pods whenever it changes. Logs nothing on a node without a cluster. */
export function logPodSourceChanges(warn: (message: string, detail: string) => void): (kubernetes: Kubernetes) => void {
  let before = "api, complete";
  return ({ source, error }) => {
    const now = `${source}, ${error === undefined ? "complete" : "incomplete"}`;
    if (now === before) return;
    if (error !== undefined) warn(MESSAGES[source], error);
    else if (source === "api") warn("pods: API server answers again", "pods are read from the API server");
    before = now;
  };
}

const MESSAGES: Readonly<Record<Kubernetes["source"], string>> = {
  api: "pods: API server answers in part",
  kubelet: "pods: API server unavailable; reading them from kubelet",
  none: "pods: API server and kubelet unavailable",
};
