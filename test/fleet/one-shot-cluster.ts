import { type Asked, listOf, type Reply, statusOf } from "../kube/stub-server.ts";
import {
  agentsTable,
  type FleetRig,
  fleetRig,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportsOf,
} from "./fleet-rig.ts";

export const JOBS_PATH = "/apis/batch/v1/namespaces/kube-system/jobs";
export const IN_NAMESPACE = "/api/v1/namespaces/kube-system/pods";
const POD = `${IN_NAMESPACE}/unghost-x-1`;

/** A cluster with the node n1, which has no agent, and what becomes of a one-shot pod in it. */
export interface OneShotCluster {
  readonly node?: object;
  /** The answer to the pod's dry run. */
  readonly dryRun?: Reply;
  /** The pod's status, one for each time it is read; the last one stays. Undefined: there is no pod. */
  readonly statuses?: readonly (object | undefined)[];
  readonly log?: string;
}

export const RUNNING = { startTime: "2026-03-01T12:00:00Z", containerStatuses: [{ state: { running: {} } }] };
export const ended = (exitCode: number) => ({
  ...RUNNING,
  containerStatuses: [{ state: { terminated: { exitCode } } }],
});
export const waiting = (reason: string, message = "") => ({
  startTime: "2026-03-01T12:00:00Z",
  containerStatuses: [{ state: { waiting: { reason, message } } }],
});

export async function oneShotCluster(cluster: OneShotCluster): Promise<FleetRig> {
  const { statuses = [RUNNING, RUNNING, ended(0)], log = "", dryRun = { body: {} } } = cluster;
  let reads = 0;
  const answers = (asked: Asked): Reply => {
    const { method, path, query } = asked;
    const at = `${method} ${path}`;
    if (at === `GET ${NODES_PATH}`) return { body: nodesTable(["n1", "Ready"]) };
    if (at === `GET ${NODES_PATH}/n1`) return { body: cluster.node ?? nodeWith() };
    if (at === `GET ${PODS_PATH}`) return { body: agentsTable() };
    if (at === `GET ${REPORTS_PATH}`) return { body: reportsOf() };
    if (at === `POST ${IN_NAMESPACE}` && query.get("dryRun") === "All") return dryRun;
    if (at === `POST ${JOBS_PATH}`) return { body: { metadata: { name: "unghost-x" } } };
    if (at === `GET ${IN_NAMESPACE}`) {
      const status = statuses[Math.min(reads++, statuses.length - 1)];
      return { body: listOf(status === undefined ? [] : [{ metadata: { name: "unghost-x-1" }, status }]) };
    }
    if (at === `GET ${POD}/log`) return { body: log };
    if (method === "DELETE") return { body: {} };
    return statusOf(404, `${path} not found`);
  };
  return await fleetRig(answers);
}

export function nodeWith({
  osImage = "Debian GNU/Linux 12 (bookworm)",
  ready = "True",
  operatingSystem = "linux",
} = {}) {
  return {
    metadata: { name: "n1" },
    status: {
      addresses: [{ type: "InternalIP", address: "192.0.2.7" }],
      nodeInfo: { osImage, operatingSystem },
      conditions: [{ type: "Ready", status: ready, lastTransitionTime: "2026-03-01T12:00:00Z" }],
    },
  };
}

/** Method and path of everything that changes something. */
export function writesOf({ server }: FleetRig): readonly string[] {
  return server.asked
    .filter(({ method }) => method !== "GET")
    .map(({ method, path, query }) => `${method} ${path}${query.size > 0 ? `?${query.toString()}` : ""}`);
}
