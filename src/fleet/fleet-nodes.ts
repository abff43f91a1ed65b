import * as v from "valibot";
import { printable } from "../host/text.ts";
import type { Api } from "../kube/api.ts";
import { KubeError, orKubeError } from "../kube/errors.ts";
import { GHOST_REPORTS, GhostReportSchema, type GhostReportStatus } from "../kube/ghost-report.ts";
import { listAll } from "../kube/list.ts";
import { listTable } from "../kube/table.ts";
import type { Failure } from "./one-shot/failure.ts";

/** A node as the API shows it. Everything in it was written by others. */
export interface FleetNode {
  readonly name: string;
  /** `unknown` without a report, and with a report of good news that nothing confirms. */
  readonly verdict: GhostReportStatus["verdict"];
  /** As kubectl shows it, such as `Ready,SchedulingDisabled`; "" for a report without a node. */
  readonly nodeStatus: string;
  readonly agent: AgentStanding;
  readonly report?: GhostReportStatus;
  /** `scanned`: by a pod just now, because there is no agent; or why not. */
  readonly oneShot?: "scanned" | Failure;
}

/**
 * Whether the report is current. A report is no heartbeat: the readiness of the agent's pod shows that.
 *
 * - `ready`: its pod is ready. - `not-ready`: it is not: the report may be stale. - `none`: the node has neither a pod of
 *   an agent nor a report of the last hour. - `no-pod`: a report of the last hour, and no pod: an agent installed on the
 *   node itself. - `unreadable`: the report has another structure, such as that of another version.
 */
export type AgentStanding = "ready" | "not-ready" | "none" | "no-pod" | "unreadable";

export interface FleetChoice {
  readonly names: readonly string[];
  readonly selector?: string;
}

export interface Fleet {
  readonly nodes: readonly FleetNode[];
  /** Named nodes that do not exist. */
  readonly missing: readonly string[];
  /** What could not be read, and what is lost without it. */
  readonly problems: readonly string[];
}

export const AGENTS = "app.kubernetes.io/name=unghost,app.kubernetes.io/component=agent";
/** Of 8 KiB at most each. */
const PAGE_SIZE = 2500;
/** A report is written once an hour. */
const RECENT_MS = 75 * 60_000;

/** A report of another structure must not hide the others. */
const ReportItem = v.pipe(
  v.looseObject({ metadata: v.object({ name: v.string() }) }),
  v.transform((object) => {
    const report = v.safeParse(GhostReportSchema, object);
    return { name: object.metadata.name, status: report.success ? report.output.status : ("unreadable" as const) };
  }),
);
type ReportOfNode = v.InferOutput<typeof ReportItem>["status"];

/** In as few requests as possible: reports in large pages, nodes and agents as rows. */
export async function readFleet(api: Api, choice: FleetChoice, now: Date): Promise<Fleet> {
  const [only] = choice.names.length === 1 ? choice.names : [];
  const [reports, nodes, agents] = await Promise.all([
    orKubeError(readReports(api, only)),
    listTable(api, {
      path: "/api/v1/nodes",
      query: { ...selecting("metadata.name", only), ...(choice.selector ? { labelSelector: choice.selector } : {}) },
      columns: ["Name", "Status"],
    }),
    orKubeError(
      listTable(api, {
        path: "/api/v1/pods",
        query: { labelSelector: AGENTS, ...selecting("spec.nodeName", only) },
        columns: ["Ready", "Status", "Node"],
      }),
    ),
  ]);
  if (reports instanceof KubeError && reports.kind !== "not-found") throw reports;
  const reportOf = reports instanceof KubeError ? new Map<string, ReportOfNode>() : reports;
  const readyOn = agents instanceof KubeError ? undefined : readinessByNode(agents);
  const wanted = choice.names.length === 0 ? nodes : nodes.filter(({ Name }) => choice.names.includes(Name));
  const found = wanted.map(({ Name: name, Status: nodeStatus }) =>
    fleetNode({ name, nodeStatus, report: reportOf.get(name), isReady: readyOn?.get(name), now }),
  );
  const known = new Set(wanted.map(({ Name }) => Name));
  return {
    nodes: found,
    missing: choice.names.filter((name) => !known.has(name)),
    problems: [
      ...(reports instanceof KubeError ? ["GhostReport is not installed in this cluster: no agent reports to it"] : []),
      ...(agents instanceof KubeError
        ? [`which agents are ready is unknown, so that a report may be up to an hour old: ${agents.message}`]
        : []),
    ],
  };
}

function selecting(field: string, value: string | undefined): Readonly<Record<string, string>> {
  return value === undefined ? {} : { fieldSelector: `${field}=${value}` };
}

async function readReports(api: Api, only: string | undefined): Promise<ReadonlyMap<string, ReportOfNode>> {
  const items = await listAll(api, {
    path: GHOST_REPORTS,
    query: selecting("metadata.name", only),
    item: ReportItem,
    // All of them from the server's cache, which answers in one response and in half the time. One node's is read from etcd.
    fresh: only !== undefined,
    pageSize: PAGE_SIZE,
  });
  return new Map(items.map(({ name, status }) => [name, status]));
}

/** During an update a node has two pods of the agent for a moment: one that is ready counts. */
function readinessByNode(
  pods: readonly Readonly<Record<"Ready" | "Status" | "Node", string>>[],
): ReadonlyMap<string, boolean> {
  const ready = new Map<string, boolean>();
  for (const { Ready, Status, Node } of pods) {
    const [running, all] = Ready.split("/");
    const isReady = Status === "Running" && running !== "0" && running === all;
    ready.set(Node, isReady || ready.get(Node) === true);
  }
  return ready;
}

interface NodeParts {
  readonly name: string;
  readonly nodeStatus: string;
  readonly report: ReportOfNode;
  /** Missing without a pod of an agent on the node. */
  readonly isReady: boolean | undefined;
  readonly now: Date;
}

function fleetNode({ name, nodeStatus, report, isReady, now }: NodeParts): FleetNode {
  const node = { name: printable(name), nodeStatus: printable(nodeStatus) };
  if (report === "unreadable") return { ...node, verdict: "unknown", agent: "unreadable" };
  const agent = standingOf(report, isReady, now);
  if (report === undefined) return { ...node, verdict: "unknown", agent };
  const isCurrent = (agent === "ready" || agent === "no-pod") && !nodeStatus.startsWith("NotReady");
  const verdict = report.verdict === "healthy" && !isCurrent ? "unknown" : report.verdict;
  return { ...node, verdict, agent, report };
}

function standingOf(report: GhostReportStatus | undefined, isReady: boolean | undefined, now: Date): AgentStanding {
  if (isReady !== undefined) return isReady ? "ready" : "not-ready";
  if (report === undefined) return "none";
  return isRecent(report, now) ? "no-pod" : "none";
}

export function isRecent({ observedAt }: Pick<GhostReportStatus, "observedAt">, now: Date): boolean {
  return now.getTime() - Date.parse(observedAt) <= RECENT_MS;
}
