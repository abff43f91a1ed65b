import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import type { ApiAccess } from "../kube/access.ts";
import { type Api, getObject, openApi } from "../kube/api.ts";
import { KubeError, type KubeErrorKind, orKubeError, unlessError } from "../kube/errors.ts";
import {
  createGhostHeal,
  deleteGhostHeal,
  type GhostHealSpec,
  type HealAnswer,
  type HealProgress,
  readGhostHeal,
  readOwnName,
} from "../kube/ghost-heal.ts";

/** What a node is asked for: its plan, or to heal by the plan that was shown. */
export type HealRequest = Pick<GhostHealSpec, "targets" | "namespaces" | "planDigest" | "dryRun" | "columns">;

export type NodeAnswer =
  /** `request`: the name of the GhostHeal. */
  | { readonly kind: "answered"; readonly request: string; readonly answer: HealAnswer }
  /** No agent has read the request, which was withdrawn. */
  | { readonly kind: "unread"; readonly waitedMs: number }
  /** The agent has read it and does not answer, or the operator does not wait any longer. The node may be healing. */
  | { readonly kind: "unanswered"; readonly request: string; readonly reason: string };

export interface Asking {
  readonly access: ApiAccess;
  /** Of each request to the API server. */
  readonly requestMs: number;
  /** The operator does not wait any longer. */
  readonly stop: AbortSignal;
  /** How long the agent has to read it. */
  readonly readMs?: number;
}

/** An agent reads a request at once; one whose watch was broken reads it within half a minute. */
const READ_MS = 35_000;
/** A sandbox that hangs takes the runtime's two minutes, and a second try. */
const ANSWER_MS = 15 * 60_000;
const FIRST_POLL_MS = 100;
const LONGEST_POLL_MS = 2000;

const NodeSchema = v.object({ metadata: v.object({ name: v.string(), uid: v.string() }) });

/** Asks the agent of a node, and waits for its answer. Throws a KubeError if the request cannot be made. */
export async function askNode(node: string, request: HealRequest, asking: Asking): Promise<NodeAnswer> {
  const name = await inOneRequest(asking, (api) => made(api, node, request));
  const startedAt = performance.now();
  const { readMs = READ_MS } = asking;
  let pollMs = FIRST_POLL_MS;
  for (;;) {
    const seen = await orKubeError(inOneRequest(asking, (api) => readGhostHeal(api, name)));
    // An API server that does not answer for a moment is asked again; a request that has gone is not.
    const isGone = seen instanceof KubeError && seen.kind === "not-found";
    if (isGone) return { kind: "unanswered", request: name, reason: "the request was deleted" };
    const progress = unlessError(seen);
    if (progress?.answer !== undefined) return { kind: "answered", request: name, answer: progress.answer };
    const waitedMs = performance.now() - startedAt;
    const isUnread = progress?.isStarted === false;
    if (asking.stop.aborted || waitedMs > (isUnread ? readMs : ANSWER_MS)) {
      if (isUnread && (await withdrawn(name, progress.version, asking))) return { kind: "unread", waitedMs };
      if (!isUnread || asking.stop.aborted) return { kind: "unanswered", request: name, reason: whyNot(asking, seen) };
    }
    await pause(pollMs, asking.stop);
    pollMs = Math.min(pollMs * 1.5, LONGEST_POLL_MS);
  }
}

async function made(api: Api, node: string, request: HealRequest): Promise<string> {
  const path = `/api/v1/nodes/${encodeURIComponent(node)}`;
  const [{ metadata }, requestedBy] = await Promise.all([getObject(api, path, NodeSchema, "node"), readOwnName(api)]);
  const name = await orKubeError(createGhostHeal(api, { node: metadata, spec: { ...request, requestedBy } }));
  if (!(name instanceof KubeError)) return name;
  const next = HINTS[name.kind];
  throw next === undefined ? name : new KubeError(name.kind, `${name.message}; ${next}`, name);
}

const HINTS: Partial<Record<KubeErrorKind, string>> = {
  forbidden: "the ClusterRole unghost-healer allows it",
  "not-found": "this cluster has no GhostHeal: upgrade unghost in it",
};

function whyNot({ stop }: Asking, seen: HealProgress | KubeError): string {
  if (stop.aborted) return "you did not wait for the answer";
  return seen instanceof KubeError ? seen.message : `it has not answered for ${ANSWER_MS / 60_000} minutes`;
}

/** A request that no operator waits for must not be executed later. False if the agent has read it meanwhile, or if it cannot be deleted. */
async function withdrawn(name: string, version: string, asking: Asking): Promise<boolean> {
  const refused = await orKubeError(inOneRequest(asking, (api) => deleteGhostHeal(api, name, version)));
  return !(refused instanceof KubeError);
}

async function inOneRequest<Result>({ access, requestMs }: Asking, work: (api: Api) => Promise<Result>) {
  const api = openApi(access, { timeoutMs: requestMs });
  try {
    return await work(api);
  } finally {
    api.close();
  }
}

/** Ends early, without an error, when the operator stops waiting. */
async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await sleep(milliseconds, undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
