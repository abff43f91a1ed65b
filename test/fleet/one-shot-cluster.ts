import { type Asked, listOf, type Reply, statusOf } from "../kube/stub-server.ts";
import { clusterOf, type FleetRig, fleetRig, NODES_PATH } from "./fleet-rig.ts";

export const JOBS_PATH = "/apis/batch/v1/namespaces/kube-system/jobs";
export const IN_NAMESPACE = "/api/v1/namespaces/kube-system/pods";
const POD = `${IN_NAMESPACE}/unghost-x-1`;

type Statuses = readonly (object | undefined)[];

/** A cluster with the node n1, which has no agent, and what becomes of a one-shot pod in it. */
export interface OneShotCluster {
  readonly node?: object;
  /** The answer to the pod's dry run. */
  readonly dryRun?: Reply;
  /** The pod's status, one for each time it is read; the last one stays. Undefined: there is no pod. */
  readonly statuses?: Statuses | ((pod: number) => Statuses);
  /** Of its pod, or of one pod after the other. */
  readonly log?: string | readonly string[];
  /** Pods that somebody else labelled as ours. */
  readonly others?: readonly object[];
}

const JOB_UID = "3f1c5b1e-0000-4000-8000-000000000001";

/** The pod that the job controller makes of the Job's template. */
export function podOf(job: unknown, status: object, name = "unghost-x-1") {
  const { spec } = job as { readonly spec: { readonly template: { readonly spec: object } } };
  const owner = { apiVersion: "batch/v1", kind: "Job", name: "unghost-x", uid: JOB_UID, controller: true };
  return { metadata: { name, ownerReferences: [owner] }, spec: spec.template.spec, status };
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
  const { statuses = [RUNNING, RUNNING, ended(0)], log = "", dryRun = { body: {} }, others = [] } = cluster;
  const lists = clusterOf({ agents: [], reports: [] });
  let reads = 0;
  const jobs: unknown[] = [];
  const answers = (asked: Asked): Reply => {
    const { method, path, query, body } = asked;
    const at = `${method} ${path}`;
    if (method === "GET" && path in lists) return { body: lists[path] };
    if (at === `GET ${NODES_PATH}/n1`) return { body: cluster.node ?? nodeWith() };
    if (at === `POST ${IN_NAMESPACE}` && query.get("dryRun") === "All") return dryRun;
    if (at === `POST ${JOBS_PATH}`) {
      jobs.push(body);
      reads = 0;
      return { body: { metadata: { name: "unghost-x", uid: JOB_UID } } };
    }
    if (at === `GET ${IN_NAMESPACE}`) {
      const ofPod = typeof statuses === "function" ? statuses(jobs.length) : statuses;
      const status = ofPod[Math.min(reads++, ofPod.length - 1)];
      return { body: listOf([...others, ...(status === undefined ? [] : [podOf(jobs.at(-1), status)])]) };
    }
    if (at === `GET ${POD}/log`) return { body: typeof log === "string" ? log : log[jobs.length - 1] };
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
