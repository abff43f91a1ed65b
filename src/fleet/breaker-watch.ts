import type { OpenCluster } from "../kube/cluster-credentials.ts";
import { KubeError, orKubeError } from "../kube/errors.ts";
import { withApi } from "../kube/with-api.ts";
import { type BreakerState, CLOSED, decideBreaker, WINDOW_MS } from "./breaker.ts";
import type { FleetPolicy } from "./fleet-policy.ts";
import { FRESH_MS, fleetCounts } from "./shared-counts.ts";
import type { Timing } from "./timing.ts";

export interface BreakerWatchOptions {
  readonly openCluster: OpenCluster;
  readonly policy: () => FleetPolicy;
  readonly node: () => string;
  readonly timing: Timing;
  /** Called when it opens or closes. */
  readonly onTurn: (state: BreakerState) => void;
}

export interface BreakerWatch {
  state(): BreakerState;
  /** Counts the fleet if that is due, and waits at most this long; throws a KubeError if it cannot be counted. */
  check(waitMs: number): Promise<void>;
  close(): Promise<void>;
}

/** Listing a large fleet takes a while; callers wait less than this. */
const COUNT_MS = 15_000;
/** While it is open, it is checked regularly, even if this node has no actions any more. */
const CHECK_EVERY_MS = 30_000;

export function openBreaker({ openCluster, policy, node, timing, onTurn }: BreakerWatchOptions): BreakerWatch {
  const ended = new AbortController();
  let state = CLOSED;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  let counting: Promise<KubeError | undefined> | undefined;
  let watching: Promise<void> = Promise.resolve();

  async function count(): Promise<KubeError | undefined> {
    const { namespace, ...limits } = policy();
    const counter = { namespace, node: node(), timing, signal: ended.signal };
    const counts = await orKubeError(withApi(openCluster, COUNT_MS, (api) => fleetCounts(api, counter)));
    if (counts instanceof KubeError) {
      // A result this old is stale, and a node must be able to heal without any API.
      if (timing.clock() - countedAtMs > WINDOW_MS) become(CLOSED);
      return counts;
    }
    if (counts === undefined) return undefined;
    countedAtMs = timing.clock();
    become(decideBreaker(state, counts, limits, timing.now()));
    return undefined;
  }

  function become(next: BreakerState): void {
    const before = state;
    state = next;
    if (next.open === before.open) return;
    onTurn(next);
    if (next.open) watching = watchUntilClosed();
  }

  async function watchUntilClosed(): Promise<void> {
    while (state.open && !ended.signal.aborted) {
      await timing.sleep(CHECK_EVERY_MS * (1 + timing.random() / 2), ended.signal);
      if (!ended.signal.aborted) await countOnce();
    }
  }

  function countOnce(): Promise<KubeError | undefined> {
    counting ??= count().finally(() => {
      counting = undefined;
    });
    return counting;
  }

  return {
    state: () => state,
    check: async (waitMs) => {
      if (timing.clock() - countedAtMs < FRESH_MS) return;
      const enough = new AbortController();
      const late = timing.sleep(waitMs, enough.signal).then(() => "late" as const);
      const outcome = await Promise.race([countOnce(), late]);
      enough.abort();
      if (outcome === "late") throw new KubeError("timeout", `the fleet could not be counted within ${waitMs} ms`);
      if (outcome instanceof KubeError) throw outcome;
    },
    close: async () => {
      ended.abort();
      await watching;
    },
  };
}
