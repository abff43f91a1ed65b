import * as v from "valibot";
import { classById } from "../../classes/index.ts";
import { printable } from "../../host/text.ts";
import { type Api, getObject } from "../../kube/api.ts";
import { KubeError, orKubeError } from "../../kube/errors.ts";
import { GHOST_HEALS } from "../../kube/ghost-heal.ts";
import { listAll } from "../../kube/list.ts";
import type { FleetRow, FleetState } from "../../report/fleet-state.ts";
import { AGENTS, type FleetNode, readFleet } from "../fleet-nodes.ts";
import { worstFirst } from "../scan-report.ts";

type ReadState = Omit<FleetState, "version" | "cluster" | "trouble">;

/** A page must stay one that a browser can show. */
const MOST_PODS = 1000;
const MOST_HELD = 20;

/** What the dashboard shows, in a handful of requests, also for thousands of nodes. */
export async function readDashboard(api: Api, now: Date): Promise<ReadState> {
  const [fleet, asked, slots] = await Promise.all([
    readFleet(api, { names: [] }, now),
    orKubeError(readAsked(api)),
    orKubeError(readSlots(api)),
  ]);
  const nodes = worstFirst(fleet.nodes);
  const healing = nodes.flatMap(({ name, report }) =>
    (report?.findings ?? []).flatMap(({ standing, class: id, pod }) =>
      standing === "healing" ? [{ node: name, what: printable(`${id} ${pod ?? ""}`.trim()) }] : [],
    ),
  );
  const blockedPods = nodes.flatMap(({ name, report }) =>
    (report?.blockedPods ?? []).map((pod) => ({ pod: printable(pod), node: name })),
  );
  return {
    readAt: now.toISOString(),
    nodes: nodes.map(rowOf),
    classes: classesOf(nodes),
    blockedPods: blockedPods.slice(0, MOST_PODS),
    heals: [...(asked instanceof KubeError ? [] : asked), ...healing],
    onHold: onHoldIn(nodes),
    slots: slots instanceof KubeError ? undefined : slots,
    problems: [
      ...fleet.problems,
      ...(asked instanceof KubeError && asked.kind !== "not-found" ? [`requests to heal: ${asked.message}`] : []),
      ...(slots instanceof KubeError ? [`slots of the fleet: ${slots.message}`] : []),
    ].map(printable),
  };
}

function rowOf({ name, verdict, nodeStatus, agent, report }: FleetNode): FleetRow {
  const { able, since = "" } = report?.podCreation ?? {};
  return {
    name,
    verdict,
    isStale: report !== undefined && (agent === "not-ready" || agent === "none"),
    status: nodeStatus,
    agent,
    classes: (report?.classes ?? []).map(({ class: id, count }) => ({ class: printable(id), count })),
    blocked: report?.totals.blockedPods ?? 0,
    cannotStart: able === "no" ? printable(since) : undefined,
  };
}

function classesOf(nodes: readonly FleetNode[]): FleetState["classes"] {
  const counts = nodes.flatMap(({ report }) => report?.classes ?? []);
  return [...Map.groupBy(counts, ({ class: id }) => id)]
    .map(([id, found]) => ({
      id: printable(id),
      title: classById(id)?.title ?? printable(id),
      nodes: found.length,
      findings: found.reduce((sum, { count }) => sum + count, 0),
    }))
    .toSorted((one, other) => other.nodes - one.nodes || (one.id < other.id ? -1 : 1));
}

/** An open breaker, a pause or a maintenance window, in the words of the agents. */
function onHoldIn(nodes: readonly FleetNode[]): FleetState["onHold"] {
  const held = nodes.flatMap(({ name, report }) =>
    report?.notHealing === undefined ? [] : [{ name, message: printable(report.notHealing) }],
  );
  return [...Map.groupBy(held, ({ message }) => message)]
    .map(([message, of]) => ({ message, nodes: of.map(({ name }) => name) }))
    .toSorted((one, other) => other.nodes.length - one.nodes.length)
    .slice(0, MOST_HELD);
}

const AskedItem = v.object({
  spec: v.object({ node: v.string(), requestedBy: v.optional(v.string()), dryRun: v.optional(v.boolean(), false) }),
  status: v.nullish(v.object({ outcome: v.optional(v.string()) })),
});

/** Requests that are not answered yet. */
async function readAsked(api: Api): Promise<FleetState["heals"]> {
  const items = await listAll(api, { path: GHOST_HEALS, query: {}, item: AskedItem, fresh: false, pageSize: 500 });
  return items.flatMap(({ spec, status }) =>
    spec.dryRun || status?.outcome !== undefined
      ? []
      : [{ node: printable(spec.node), what: "a request to heal", by: printable(spec.requestedBy ?? "unknown") }],
  );
}

const PodsSchema = v.object({
  items: v.nullish(v.array(v.object({ metadata: v.object({ namespace: v.string() }) })), []),
});
const LeasesSchema = v.object({
  items: v.nullish(
    v.array(
      v.object({
        metadata: v.object({ name: v.string() }),
        spec: v.nullish(v.object({ holderIdentity: v.nullish(v.string()) })),
      }),
    ),
    [],
  ),
});
const SLOT = /^unghost-heal-\d+$/;

/** The agents keep their slots in their own namespace. */
async function readSlots(api: Api): Promise<FleetState["slots"]> {
  const query = new URLSearchParams({ labelSelector: AGENTS, limit: "1", resourceVersion: "0" });
  const { items } = await getObject(api, "/api/v1/pods", PodsSchema, "list of agents", `?${query.toString()}`);
  const [agent] = items ?? [];
  if (agent === undefined) return [];
  const path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(agent.metadata.namespace)}/leases`;
  const leases = await getObject(api, path, LeasesSchema, "list of slots");
  return (leases.items ?? [])
    .filter(({ metadata }) => SLOT.test(metadata.name))
    .map(({ metadata, spec }) => ({ name: metadata.name, holder: printable(spec?.holderIdentity ?? "") }));
}
