import { defaultCgroup } from "../cgroup.ts";
import type { NodeOptions } from "../node.ts";
import type { ExecOptions } from "../node-exec.ts";
import { until } from "../poll.ts";
import type { KubernetesVersion, RuntimeVersion } from "../runtimes.ts";
import { ensureTools } from "../tools.ts";
import type { CommandWatch } from "../verdict-watch.ts";
import type { ApiReader } from "./api-reader.ts";
import { type ClusterNode, startClusterNode } from "./cluster-node.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import type { KubeletSettings } from "./kubelet.ts";
import { type ClusterAddresses, IPV4 } from "./network.ts";
import type { Condition, NodeObject, PodObject } from "./objects.ts";
import { ensureClusterTools } from "./tools.ts";

export interface ClusterOptions {
  /** Defaults to containerd 1.6. */
  readonly runtime?: RuntimeVersion;
  /** One by default. */
  readonly nodes?: number;
  readonly kubelet?: KubeletSettings;
  /** Of control plane and kubelets; the first of the lab's table by default. */
  readonly kubernetes?: KubernetesVersion;
  /** Of each node; see NodeOptions. */
  readonly disk?: NodeOptions["disk"];
  readonly cgroup?: NodeOptions["cgroup"];
  /** IPv4 by default. */
  readonly addresses?: ClusterAddresses;
  readonly runtimeConfig?: string;
  /** Called with every command that is run in a node. */
  readonly watch?: CommandWatch;
}

/** A real control plane and real kubelets, for fault injection. */
export interface Cluster {
  readonly controlPlane: ControlPlane;
  readonly api: ApiReader;
  /** The first node, mostly the only one. */
  readonly node: ClusterNode;
  readonly nodes: readonly ClusterNode[];
  kubectl(...args: readonly string[]): Promise<string>;
  /** Like `kubectl apply -f -`. */
  apply(objects: readonly object[] | string, options?: ExecOptions): Promise<void>;
  pods(namespace?: string): Promise<readonly PodObject[]>;
  /** Waits until exactly this many pods exist and all of them match. */
  waitForPods(count: number, isIt: (pod: PodObject) => boolean, timeoutMs?: number): Promise<readonly PodObject[]>;
  condition(node: ClusterNode, type: string): Promise<Condition | undefined>;
  waitForCondition(node: ClusterNode, type: string, isIt: (condition: Condition) => boolean): Promise<Condition>;
  /** Removes everything. */
  destroy(): Promise<void>;
}

interface EventList {
  readonly items: readonly {
    readonly involvedObject: { readonly name?: string };
    readonly reason?: string;
    readonly message?: string;
    readonly count?: number;
  }[];
}

/** Of the pods that keep a story waiting. */
const MOST_EXPLAINED = 3;
const LAST_EVENTS = 4;

/** Only a hang guard. */
const WAIT_MS = 300_000;
const POLL_MS = 250;

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const programs = await ensureClusterTools(options.kubernetes);
  if (!programs.available) throw new Error(`no cluster here: ${programs.reason}`);
  const tools = await ensureTools();
  const { runtime = "1.6", kubelet = {}, disk = "directory", runtimeConfig = "", watch } = options;
  const { addresses = IPV4, cgroup = defaultCgroup() } = options;
  const how = { runtime, kubelet, addresses, disk, cgroup, runtimeConfig, ...(watch === undefined ? {} : { watch }) };
  // Concurrently: each of them mostly waits for its own programs.
  const starting = startControlPlane(tools, programs, addresses);
  const indexes = Array.from({ length: options.nodes ?? 1 }, (_, index) => index);
  const [plane, ...joined] = await Promise.allSettled([
    starting,
    ...indexes.map((index) => startClusterNode(index, starting, tools, programs, how)),
  ]);
  const nodes = joined.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));

  async function destroy(): Promise<void> {
    const machines = [...nodes.map(({ lab }) => lab), ...(plane.status === "fulfilled" ? [plane.value] : [])];
    await Promise.all(machines.map((machine) => machine.destroy()));
  }

  try {
    for (const one of [plane, ...joined]) if (one.status === "rejected") throw one.reason;
    const cluster = clusterOf(await starting, nodes, destroy);
    for (const node of nodes) await cluster.waitForCondition(node, "Ready", ({ status }) => status === "True");
    await serviceAccountOf(cluster, "default");
    return cluster;
  } catch (error) {
    await destroy();
    throw error;
  }
}

function clusterOf(controlPlane: ControlPlane, nodes: readonly ClusterNode[], destroy: () => Promise<void>): Cluster {
  const { api } = controlPlane;
  const [node] = nodes;
  if (node === undefined) throw new Error("a cluster needs at least one node");

  async function pods(namespace = "default"): Promise<readonly PodObject[]> {
    const { items } = await api.get<{ readonly items: readonly PodObject[] }>(`/api/v1/namespaces/${namespace}/pods`);
    return items;
  }

  async function lastEvents(of: readonly PodObject[]): Promise<string> {
    const { items } = await api.get<EventList>("/api/v1/namespaces/default/events");
    return of
      .slice(0, MOST_EXPLAINED)
      .flatMap(({ metadata: { name } }) => {
        const its = items.filter(({ involvedObject }) => involvedObject.name === name).slice(-LAST_EVENTS);
        return its.map(({ reason, message, count = 1 }) => `${name}: ${count} x ${reason}: ${message}`);
      })
      .join("\n");
  }

  async function condition({ name }: ClusterNode, type: string): Promise<Condition | undefined> {
    const { status } = await api.get<NodeObject>(`/api/v1/nodes/${name}`);
    return status.conditions?.find((one) => one.type === type);
  }

  return {
    controlPlane,
    api,
    node,
    nodes,
    kubectl: (...args) => controlPlane.kubectl(args),
    apply: async (objects, how = {}) => {
      const stdin =
        typeof objects === "string" ? objects : JSON.stringify({ kind: "List", apiVersion: "v1", items: objects });
      await controlPlane.kubectl(["apply", "-f", "-"], { ...how, stdin });
    },
    pods,
    waitForPods: async (count, isIt, timeoutMs = WAIT_MS) => {
      let seen: readonly PodObject[] = [];
      const probe = async () => {
        seen = await pods();
        return seen.length === count && seen.every(isIt) ? seen : undefined;
      };
      const what = () => `${count} pods are as asked; seen: ${seen.map(inOneLine).join("; ")}`;
      try {
        return await until(what, timeoutMs, probe, POLL_MS);
      } catch (error) {
        const reasons = await lastEvents(seen.filter((pod) => !isIt(pod))).catch(String);
        throw new Error(`${error instanceof Error ? error.message : String(error)}\n${reasons}`, { cause: error });
      }
    },
    condition,
    waitForCondition: (of, type, isIt) => {
      let now: Condition | undefined;
      const probe = async () => {
        // Before kubelet's registration there is no Node object yet.
        now = await condition(of, type).catch(() => undefined);
        return now !== undefined && isIt(now) ? now : undefined;
      };
      const what = () => `the condition ${type} of ${of.name} is as asked, and not ${JSON.stringify(now)}`;
      return until(what, WAIT_MS, probe, POLL_MS);
    },
    destroy,
  };
}

/** Pods are refused until the controller manager has created the namespace's ServiceAccount. */
async function serviceAccountOf({ api }: Cluster, namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  const probe = () => api.text(path).catch(() => undefined);
  await until(`the namespace ${namespace} has its ServiceAccount`, WAIT_MS, probe, POLL_MS);
}

function inOneLine({ metadata, status }: PodObject): string {
  const [container] = status.containerStatuses ?? [];
  const waiting = container?.state?.waiting?.reason ?? "";
  return `${metadata.name} ${status.phase ?? ""} ${waiting}`.trim();
}
