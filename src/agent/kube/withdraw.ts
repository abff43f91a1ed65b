import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { property } from "../../host/text.ts";
import type { Api } from "../../kube/api.ts";
import { type OpenCluster, withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/errors.ts";
import { GHOST_HEALS } from "../../kube/ghost-heal.ts";
import { deleteGhostReport, GHOST_REPORTS } from "../../kube/ghost-report.ts";
import { listAll } from "../../kube/list.ts";
import { isSameMachine } from "../../node/machine.ts";
import { COUNTS_LEASE, NodeSchema } from "../limits/breaker.ts";
import { deleteConditions, readNode } from "./condition-publisher.ts";

interface WithdrawOptions {
  readonly namespace: string;
  /** How long to wait for the agents' pods to end: a running one would publish its conditions again. */
  readonly waitMs: number;
}

const AGENTS = "app.kubernetes.io/name=unghost,app.kubernetes.io/component=agent";
/** Left by `helm test`: it is not part of the release. */
const DOCTORS = "app.kubernetes.io/name=unghost,app.kubernetes.io/component=doctor";
const POLL_MS = 500;

const Named = v.object({ metadata: v.object({ name: v.string() }) });

/**
 * Removes what agents have published in the cluster: the conditions of every node, the fleet's leases, the GhostReports,
 * and requests to them. `agents` in the result were still running after the timeout.
 */
export async function withdraw(api: Api, { namespace, waitMs }: WithdrawOptions) {
  const agents = await waitForAgents(api, namespace, waitMs);
  const all = await listAll(api, { path: "/api/v1/nodes", item: NodeSchema, fresh: true });
  const nodes = all.filter(({ conditions }) => conditions.size > 0).map(({ name }) => name);
  for (const node of nodes) await deleteConditions(api, node);
  const path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  const leases = (await listAll(api, { path, item: Named, fresh: true }))
    .map(({ metadata }) => metadata.name)
    .filter((name) => name === COUNTS_LEASE || /^unghost-heal-\d+$/.test(name));
  for (const lease of leases) await api.delete(`${path}/${lease}`, {});
  await deleteDoctors(api, namespace);
  const reports = await unlessMissing(api.delete(GHOST_REPORTS, {}));
  const requests = await unlessMissing(api.delete(GHOST_HEALS, {}));
  return { nodes, leases, agents, reports: countItems(reports), requests: countItems(requests) };
}

/** The answer to the deletion of a collection is the deleted objects. */
function countItems(list: unknown): number {
  const items = property(list, "items");
  return Array.isArray(items) ? items.length : 0;
}

async function deleteDoctors(api: Api, namespace: string): Promise<void> {
  const path = podsPath(namespace);
  const pods = await listAll(api, { path, query: { labelSelector: DOCTORS }, item: Named, fresh: true });
  for (const { metadata } of pods) await unlessMissing(api.delete(`${path}/${metadata.name}`, {}));
}

function podsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`;
}

async function waitForAgents(api: Api, namespace: string, waitMs: number): Promise<readonly string[]> {
  const path = podsPath(namespace);
  for (let waited = 0; ; waited += POLL_MS) {
    const pods = await listAll(api, { path, query: { labelSelector: AGENTS }, item: Named, fresh: true });
    if (pods.length === 0 || waited >= waitMs) return pods.map(({ metadata }) => metadata.name);
    await sleep(POLL_MS);
  }
}

const REQUEST_MS = 5000;

export interface OwnNode {
  readonly openCluster: OpenCluster;
  /** The node's name in the cluster. */
  readonly name: string;
  readonly hostRoot: string;
}

/** Whether the cluster still has conditions of this machine; a KubeError if that is unknown. */
export async function findCondition({ openCluster, name, hostRoot }: OwnNode): Promise<"there" | "gone" | KubeError> {
  const node = await orKubeError(withApi(openCluster, REQUEST_MS, (api) => readNode(api, name)));
  if (node instanceof KubeError) return isNoCluster(node) ? "gone" : node;
  return node.conditions.size > 0 && isSameMachine(hostRoot, node) ? "there" : "gone";
}

/** Removes the node's GhostReport as well, which never exists without the condition. */
export async function removeCondition({ openCluster, name }: OwnNode): Promise<KubeError | undefined> {
  const outcome = await orKubeError(
    withApi(openCluster, REQUEST_MS, async (api) => {
      // Not with the node's own kubelet credentials, which never wrote one.
      const report = await orKubeError(deleteGhostReport(api, name));
      if (report instanceof KubeError && !isNoReport(report)) throw report;
      await deleteConditions(api, name);
    }),
  );
  return outcome instanceof KubeError ? outcome : undefined;
}

function isNoReport({ kind }: KubeError): boolean {
  return kind === "not-found" || kind === "forbidden";
}

/** A machine without credentials, or that is not a node of the cluster, has nothing to remove. */
function isNoCluster({ kind }: KubeError): boolean {
  return kind === "no-credentials" || kind === "unusable" || kind === "not-found";
}
