import { once } from "node:events";
import { describeError } from "../../host/source.ts";
import { type NodeAccess, openNode } from "../../kube/cluster.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, type KubeErrorKind, optionalWatchBackOffMs, orKubeError } from "../../kube/errors.ts";
import {
  answerGhostHeal,
  deleteGhostHeal,
  GHOST_HEALS_OF_NODE,
  type GhostHeal,
  type GhostHealSpec,
  type HealAnswer,
  startGhostHeal,
} from "../../kube/ghost-heal.ts";
import { watchList } from "../../kube/watched-list.ts";
import { apiTime } from "../../report/node-summary.ts";
import type { ClusterUse } from "../limits/timing.ts";

/** An operator who waits longer has withdrawn it, or does not know any more what the plan was. */
export const STALE_MS = 5 * 60_000;
export const KEPT_MS = 60 * 60_000;
/** Short, because an operator waits. */
const REQUEST_MS = 5000;
const RETRY_MS = 2000;
const WRITES = 5;
const PASSING: ReadonlySet<KubeErrorKind> = new Set(["unreachable", "timeout", "busy"]);

export interface RequestsOptions extends ClusterUse {
  /** The agent ends: nothing more is started. */
  readonly stop: AbortSignal;
  /** Whether the cluster's node of this name is this machine. */
  readonly isProven: () => boolean;
  readonly answer: (spec: GhostHealSpec) => Promise<HealAnswer>;
}

const INTERRUPTED: HealAnswer = {
  outcome: "unknown",
  code: "interrupted",
  message: "The agent ended while it worked on this request.",
  next: "unghost history on the node shows what was done. Ask for a new plan.",
};

const NOT_STARTED: HealAnswer = {
  outcome: "refused",
  code: "not-started",
  message: "Whether the API server recorded the start is unknown: nothing was changed.",
  next: "Ask again.",
};

function stale(ageMs: number | undefined): HealAnswer | undefined {
  if (ageMs !== undefined && ageMs <= STALE_MS) return undefined;
  return {
    outcome: "refused",
    code: "stale",
    message:
      ageMs === undefined
        ? "The API server does not show how old this request is."
        : `The request was ${Math.round(ageMs / 1000)} s old when the agent read it, and five minutes is the limit.`,
    next: "Ask again.",
  };
}

/**
 * Answers requests to this node, one after the other, each exactly once: a request that an earlier process had started
 * is never executed again. Answered ones are removed an hour after they were first seen, by a monotonic clock.
 */
export function requestQueue({ openCluster, timing, warn, isProven, answer, stop }: RequestsOptions) {
  const seenAtMs = new Map<string, number>();
  const closed = new Set<string>();
  let working: Promise<void> = Promise.resolve();

  const write = (work: Parameters<typeof withApi<unknown>>[2]) => orKubeError(withApi(openCluster, REQUEST_MS, work));

  /** Writes again while the API server does not answer; the last refusal, and how often it was tried. */
  async function written(work: Parameters<typeof write>[0]) {
    for (let attempt = 1; ; attempt++) {
      const outcome = await write(work);
      const isLast = !(outcome instanceof KubeError) || !PASSING.has(outcome.kind) || attempt === WRITES;
      if (isLast) return { outcome, attempt };
      await timing.sleep(RETRY_MS, stop);
    }
  }

  async function conclude(name: string, reply: HealAnswer): Promise<void> {
    const { outcome } = await written((api) => answerGhostHeal(api, name, reply));
    if (!(outcome instanceof KubeError) || outcome.kind === "not-found") return;
    warn("answering a request to heal failed", `${name}: ${outcome.message}`);
    // The custom resource's limits are those of another version: then what matters is written.
    if (outcome.kind === "unreadable")
      await written((api) => answerGhostHeal(api, name, { outcome: reply.outcome, totals: reply.totals }));
  }

  async function handle(heal: GhostHeal): Promise<void> {
    if (stop.aborted) return;
    if (heal.isStarted) {
      await conclude(heal.name, INTERRUPTED);
      return;
    }
    const { outcome, attempt } = await written((api) => startGhostHeal(api, heal, apiTime(timing.now())));
    if (outcome instanceof KubeError) {
      // Withdrawn, or started by another agent of this node; or the answer to an earlier try got lost.
      if (outcome.kind === "conflict" && attempt > 1) await conclude(heal.name, NOT_STARTED);
      if (outcome.kind === "not-found" || outcome.kind === "conflict") return;
      warn("starting a request to heal failed; it stays unanswered", `${heal.name}: ${outcome.message}`);
      return;
    }
    await conclude(heal.name, stale(outcome as number | undefined) ?? (await answered(heal)));
  }

  async function answered({ spec, name }: GhostHeal): Promise<HealAnswer> {
    try {
      return await answer(spec);
    } catch (error) {
      warn("a request to heal ended unexpectedly", `${name}: ${describeError(error)}`);
      return { ...INTERRUPTED, message: "The agent's work on this request ended with an error, which is in its log." };
    }
  }

  return {
    /** Takes the requests that exist now. */
    take: (requests: readonly GhostHeal[]): void => {
      if (!isProven()) return;
      for (const heal of requests) {
        if (!seenAtMs.has(heal.name)) seenAtMs.set(heal.name, timing.clock());
        if (heal.isAnswered || closed.has(heal.name)) continue;
        closed.add(heal.name);
        working = working
          .then(() => handle(heal))
          .catch((error: unknown) => warn("a request to heal stays unanswered", describeError(error)));
      }
      const names = new Set(requests.map(({ name }) => name));
      for (const name of [...seenAtMs.keys()].filter((one) => !names.has(one))) {
        seenAtMs.delete(name);
        closed.delete(name);
      }
    },
    /** Deletes those that have been there for an hour. */
    tidy: async (): Promise<void> => {
      const old = [...seenAtMs].filter(([, atMs]) => timing.clock() - atMs >= KEPT_MS);
      for (const [name] of old) {
        const refused = await write((api) => deleteGhostHeal(api, name));
        if (!(refused instanceof KubeError) || refused.kind === "not-found") seenAtMs.delete(name);
      }
    },
    idle: (): Promise<void> => working,
  };
}

const TIDY_EVERY_MS = 5 * 60_000;

/** Watches the requests to this node. */
export function openHealRequests(options: Omit<RequestsOptions, "stop"> & { readonly node: NodeAccess }) {
  const { node, timing, warn } = options;
  const ended = new AbortController();
  const queue = requestQueue({ ...options, stop: ended.signal });
  const watched = watchList(GHOST_HEALS_OF_NODE, {
    open: () => openNode(node),
    openMs: node.limits.timeoutMs,
    onChange: take,
    backOffMs: optionalWatchBackOffMs,
  });

  function take(): void {
    const requests = watched.items(0);
    if (!(requests instanceof KubeError)) queue.take(requests);
  }

  async function run(): Promise<void> {
    await Promise.race([watched.started, once(ended.signal, "abort")]);
    const first = watched.items(0);
    if (first instanceof KubeError && first.kind === "forbidden")
      warn("requests to heal cannot be read", first.message);
    take();
    while (!ended.signal.aborted) {
      await timing.sleep(TIDY_EVERY_MS, ended.signal);
      if (ended.signal.aborted) return;
      take();
      await queue.tidy();
    }
  }

  const running = run();
  return {
    /** Called when this machine has been proven to be the cluster's node. */
    check: take,
    close: async (): Promise<void> => {
      ended.abort();
      watched.close();
      await Promise.all([running, queue.idle()]);
    },
  };
}
