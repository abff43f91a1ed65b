import * as v from "valibot";
import { type Api, getObject } from "./api.ts";
import type { Resource } from "./cluster-facts.ts";
import { KubeError } from "./errors.ts";

/** The custom resource by which an operator asks the agent of one node to heal. Who may create one may heal. */
export const GHOST_HEALS = "/apis/unghost.dev/v1alpha1/ghostheals";
const API_VERSION = "unghost.dev/v1alpha1";

const texts = v.optional(v.pipe(v.array(v.string()), v.readonly()), []);
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

const SpecSchema = v.object({
  node: v.string(),
  /** Checked by admission where its policy is installed. Nothing is decided by it. */
  requestedBy: v.optional(v.string()),
  targets: texts,
  namespaces: texts,
  /** Of the plan that the operator has seen. */
  planDigest: v.optional(v.string()),
  dryRun: v.optional(v.boolean(), false),
  /** The width of the plan's text. */
  columns: v.optional(v.number(), 100),
});
export type GhostHealSpec = Readonly<v.InferOutput<typeof SpecSchema>>;

const ActionSchema = v.object({
  finding: v.string(),
  class: v.string(),
  /** Namespace and name. */
  pod: v.optional(v.string()),
  outcome: v.picklist(["healed", "skipped", "failed", "refused"]),
  reason: v.optional(v.string()),
  journalId: v.optional(v.string()),
  seconds: v.number(),
});

/**
 * - `planned`: a dry run. - `healed`: nothing of what was asked for is left. - `incomplete`: something is left.
 * - `refused`: nothing was changed. - `unknown`: the node could not be scanned, or the agent ended meanwhile.
 */
export const HEAL_OUTCOMES = ["planned", "healed", "incomplete", "refused", "unknown"] as const;

const AnswerSchema = v.object({
  outcome: v.picklist(HEAL_OUTCOMES),
  verdict: v.optional(v.picklist(["healthy", "degraded", "ghosts", "unknown"])),
  code: v.optional(v.string()),
  message: v.optional(v.string()),
  next: v.optional(v.string()),
  planDigest: v.optional(v.string()),
  /** The plan, as `unghost heal --dry-run` prints it. */
  plan: v.optional(v.string()),
  totals: v.optional(v.object({ planned: count, healed: count, left: count })),
  actions: v.optional(v.array(ActionSchema)),
  /** What is left, in words. */
  left: v.optional(v.array(v.string())),
  truncated: v.optional(v.boolean()),
});
export type HealAnswer = Readonly<v.InferOutput<typeof AnswerSchema>>;
export type HealedAction = Readonly<v.InferOutput<typeof ActionSchema>>;

const StatusSchema = v.object({
  /** The agent has read the request. */
  startedAt: v.optional(v.string()),
  ...v.partial(AnswerSchema).entries,
});

const GhostHealSchema = v.object({
  metadata: v.object({
    name: v.string(),
    resourceVersion: v.string(),
    creationTimestamp: v.string(),
    managedFields: v.nullish(v.array(v.object({ time: v.nullish(v.string()) }))),
  }),
  spec: v.unknown(),
  status: v.nullish(StatusSchema),
});
type GhostHealObject = v.InferOutput<typeof GhostHealSchema>;

/** A request as the agent of its node sees it. Its content is the claim of an operator. */
export interface GhostHeal {
  readonly name: string;
  readonly version: string;
  readonly createdAt: string;
  readonly spec: GhostHealSpec;
  readonly isStarted: boolean;
  readonly isAnswered: boolean;
}

export const GHOST_HEALS_OF_NODE: Resource<GhostHealObject, GhostHeal> = {
  path: GHOST_HEALS,
  query: (node) => ({ fieldSelector: `spec.node=${node}` }),
  metadataOnly: false,
  schema: GhostHealSchema,
  keyOf: ({ metadata }) => metadata.name,
  reduce: (object, node) => {
    const { name, resourceVersion: version, creationTimestamp: createdAt } = object.metadata;
    const spec = v.safeParse(SpecSchema, object.spec);
    if (!spec.success || spec.output.node !== node) return undefined;
    const { status } = object;
    const isAnswered = status?.outcome !== undefined;
    return { name, version, createdAt, spec: spec.output, isStarted: status?.startedAt !== undefined, isAnswered };
  },
};

interface NewRequest {
  readonly node: { readonly name: string; readonly uid: string };
  readonly spec: Partial<Omit<GhostHealSpec, "node">>;
}

/** Returns its name. The garbage collector deletes it together with its node. */
export async function createGhostHeal(api: Api, { node, spec }: NewRequest): Promise<string> {
  const owner = { apiVersion: "v1", kind: "Node", ...node };
  const object = {
    apiVersion: API_VERSION,
    kind: "GhostHeal",
    metadata: { generateName: `${node.name}-`, ownerReferences: [owner] },
    spec: { ...spec, node: node.name },
  };
  return parsed(await api.create(GHOST_HEALS, object)).metadata.name;
}

export interface HealProgress {
  readonly version: string;
  readonly isStarted: boolean;
  readonly answer?: HealAnswer;
}

export async function readGhostHeal(api: Api, name: string): Promise<HealProgress> {
  const { metadata, status } = await getObject(api, pathOf(name), GhostHealSchema, "GhostHeal");
  const { startedAt, outcome, ...rest } = status ?? {};
  const progress = { version: metadata.resourceVersion, isStarted: startedAt !== undefined };
  return outcome === undefined ? progress : { ...progress, answer: { ...rest, outcome } };
}

/** With a version, only if it has not changed since. */
export async function deleteGhostHeal(api: Api, name: string, version?: string): Promise<void> {
  await api.delete(pathOf(name), version === undefined ? {} : { preconditions: { resourceVersion: version } });
}

/**
 * Marks the request as read, if no other client has changed it, and returns its age in milliseconds by the API server's own
 * clock, which stamps each write: the clocks of a node and of an operator's machine may be wrong. Undefined if the
 * server did not stamp it.
 */
export async function startGhostHeal(api: Api, heal: GhostHeal, startedAt: string): Promise<number | undefined> {
  const body = { metadata: { resourceVersion: heal.version }, status: { startedAt } };
  const { metadata } = parsed(await api.patch(`${pathOf(heal.name)}/status`, body, "merge"));
  const stamps = (metadata.managedFields ?? []).map(({ time }) => Date.parse(time ?? ""));
  const newest = Math.max(...stamps.filter(Number.isFinite));
  const ageMs = newest - Date.parse(metadata.creationTimestamp);
  return Number.isFinite(ageMs) ? ageMs : undefined;
}

export async function answerGhostHeal(api: Api, name: string, answer: HealAnswer): Promise<void> {
  await api.patch(`${pathOf(name)}/status`, { status: answer }, "merge");
}

function parsed(object: unknown): GhostHealObject {
  const result = v.safeParse(GhostHealSchema, object);
  if (!result.success) throw new KubeError("unreadable", "the API server's answer is no GhostHeal");
  return result.output;
}

function pathOf(name: string): string {
  return `${GHOST_HEALS}/${encodeURIComponent(name)}`;
}

const SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const SelfSchema = v.object({ status: v.object({ userInfo: v.object({ username: v.string() }) }) });

/** The user that the API server takes us for; every user may ask. */
export async function readOwnName(api: Api): Promise<string> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const result = v.safeParse(SelfSchema, await api.create(SELF, review));
  if (!result.success) throw new KubeError("unreadable", "the API server's answer is no SelfSubjectReview");
  return result.output.status.userInfo.username;
}
