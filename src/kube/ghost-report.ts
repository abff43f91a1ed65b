import * as v from "valibot";
import { type Api, getObject } from "./api.ts";

/** The custom resource with what the agent of one node found. Its CustomResourceDefinition limits each field further. */
export const GHOST_REPORTS = "/apis/unghost.dev/v1alpha1/ghostreports";
const API_VERSION = "unghost.dev/v1alpha1";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

const FindingSchema = v.object({
  class: v.string(),
  severity: v.picklist(["critical", "warning", "info"]),
  summary: v.string(),
  /** Namespace and name. */
  pod: v.optional(v.string()),
  sandboxId: v.optional(v.string()),
  since: v.optional(v.string()),
  /** How many pods neither start nor stop because of it. */
  blocks: count,
  standing: v.picklist(["observed", "waiting", "healing", "given-up"]),
  next: v.optional(v.string()),
});

const ConditionSchema = v.object({
  type: v.string(),
  status: v.picklist(["True", "False", "Unknown"]),
  reason: v.string(),
  message: v.string(),
  lastTransitionTime: v.string(),
});

/** One entry of the journal of the node. */
const HealSchema = v.object({
  at: v.string(),
  run: v.string(),
  by: v.optional(v.picklist(["cli", "agent", "boot"])),
  class: v.string(),
  subject: v.string(),
  outcome: v.picklist(["done", "failed", "refused", "interrupted", "undone"]),
});

/** Lists are missing where they are empty: Kubernetes drops nothing, and most reports are of healthy nodes. */
const StatusSchema = v.object({
  verdict: v.picklist(["healthy", "degraded", "ghosts", "unknown"]),
  worstClass: v.optional(v.string()),
  observedAt: v.string(),
  agentVersion: v.string(),
  sandboxes: v.optional(v.object({ total: count, ready: count, notReady: count })),
  podCreation: v.optional(
    v.object({
      able: v.picklist(["yes", "no", "unknown"]),
      since: v.optional(v.string()),
      lastSuccessAt: v.optional(v.string()),
      lastFailureAt: v.optional(v.string()),
      code: v.optional(v.string()),
      message: v.optional(v.string()),
    }),
  ),
  totals: v.object({ findings: count, blockedPods: count }),
  classes: v.optional(v.array(v.object({ class: v.string(), count }))),
  findings: v.optional(v.array(FindingSchema)),
  blockedPods: v.optional(v.array(v.string())),
  heals: v.optional(v.array(HealSchema)),
  notHealing: v.optional(v.string()),
  truncated: v.boolean(),
  conditions: v.optional(v.array(ConditionSchema)),
});

/** An object without a status was created a moment ago, or by someone else. */
export const GhostReportSchema = v.object({
  metadata: v.object({ name: v.string(), uid: v.optional(v.string()) }),
  status: v.optional(StatusSchema),
});

export type GhostReport = v.InferOutput<typeof GhostReportSchema>;
export type GhostReportStatus = v.InferOutput<typeof StatusSchema>;

export async function readGhostReport(api: Api, node: string): Promise<GhostReport> {
  return await getObject(api, pathOf(node), GhostReportSchema, "GhostReport");
}

/** Creates the report of a node, which the garbage collector deletes together with that node. */
export async function createGhostReport(api: Api, node: { readonly name: string; readonly uid: string }) {
  const owner = { apiVersion: "v1", kind: "Node", ...node };
  await api.apply(pathOf(node.name), objectOf(node.name, { metadata: { name: node.name, ownerReferences: [owner] } }));
}

export async function applyGhostReport(api: Api, node: string, status: GhostReportStatus): Promise<void> {
  await api.apply(`${pathOf(node)}/status`, objectOf(node, { status }));
}

export async function deleteGhostReport(api: Api, node: string): Promise<void> {
  await api.delete(pathOf(node), {});
}

function objectOf(name: string, content: object) {
  return { apiVersion: API_VERSION, kind: "GhostReport", metadata: { name }, ...content };
}

function pathOf(node: string): string {
  return `${GHOST_REPORTS}/${encodeURIComponent(node)}`;
}
