import type { Api } from "../kube/api.ts";
import { KubeError, orKubeError } from "../kube/kube-error.ts";
import type { OpenCluster } from "../kube/open-cluster.ts";
import type { FleetPolicy } from "./fleet-policy.ts";
import { getLease, type Lease, type LeaseRef, type LeaseWish, writeLease } from "./lease.ts";
import type { Timing } from "./timing.ts";
import { withApi } from "./with-api.ts";

/** A healing takes seconds; a holder that has not been heard of for this long has died. */
const DURATION_SECONDS = 60;
const RENEW_EVERY_MS = 20_000;
const REQUEST_MS = 2000;
const MOST_ATTEMPTS = 3;

export interface SlotsOptions {
  readonly openCluster: OpenCluster;
  readonly node: () => string;
  readonly timing: Timing;
  readonly say: (message: string) => void;
}

export interface HeldSlot {
  readonly name: string;
  /** Gives it to the next; where the API cannot be told, it runs out by itself. Never throws. */
  release(): Promise<void>;
}

export type SlotAnswer =
  | { readonly kind: "held"; readonly slot: HeldSlot }
  | { readonly kind: "taken"; readonly by: readonly string[] };

export interface Slots {
  /** One of the fleet's places, asked for once; where it cannot be told, a KubeError. */
  take(api: Api, policy: Pick<FleetPolicy, "slots" | "namespace">): Promise<SlotAnswer>;
}

/**
 * Places for nodes that heal disruptively, as Leases: `unghost-heal-0` and so on. A holder is a node: it has one healer
 * at a time by its own lock, so a restarted agent takes up the place of the one before it.
 */
export function openSlots(options: SlotsOptions): Slots {
  const { node, timing } = options;
  const isDead = deathWatch(timing);
  return {
    take: async (api, { slots, namespace }) => {
      const by = new Set<string>();
      // Not all from the first one on, or everybody meets there.
      const first = Math.floor(timing.random() * slots);
      for (let index = 0; index < slots; index++) {
        const ref = { namespace, name: `unghost-heal-${(first + index) % slots}` };
        const seen = await getLease(api, ref);
        if (seen !== undefined && seen.holder !== "" && seen.holder !== node() && !isDead(ref.name, seen)) {
          by.add(seen.holder);
          continue;
        }
        const lease = await writeLease(api, ref, seen, wishOf(node(), timing));
        if (lease !== undefined) return { kind: "held", slot: holdSlot(ref, lease, options) };
      }
      return { kind: "taken", by: [...by] };
    },
  };
}

/**
 * As leader election in Kubernetes has it: dead is whose Lease did not change for its whole duration by the watcher's own
 * clock. Machines' wall clocks are never compared.
 */
function deathWatch({ clock }: Timing): (name: string, lease: Lease) => boolean {
  const firstSeen = new Map<string, { readonly version: string; readonly atMs: number }>();
  return (name, { resourceVersion, durationSeconds }) => {
    const before = firstSeen.get(name);
    if (before?.version === resourceVersion)
      return clock() - before.atMs > (durationSeconds || DURATION_SECONDS) * 1000;
    firstSeen.set(name, { version: resourceVersion, atMs: clock() });
    return false;
  };
}

function holdSlot(ref: LeaseRef, taken: Lease, { openCluster, node, timing, say }: SlotsOptions): HeldSlot {
  const ended = new AbortController();
  const holder = node();
  let lease = taken;

  /** A write whose answer got lost makes the version that we know an old one: then only the holder's name tells. */
  async function write(newHolder: string): Promise<"written" | "lost"> {
    return await withApi(openCluster, REQUEST_MS, async (api) => {
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        const written = await writeLease(api, ref, lease, wishOf(newHolder, timing));
        if (written !== undefined) {
          lease = written;
          return "written";
        }
        const current = await getLease(api, ref);
        if (current?.holder !== holder) return "lost";
        lease = current;
      }
      throw new KubeError("conflict", "somebody else keeps writing to it");
    });
  }

  async function renew(): Promise<void> {
    while (!ended.signal.aborted) {
      await timing.sleep(RENEW_EVERY_MS, ended.signal);
      if (ended.signal.aborted) return;
      const outcome = await orKubeError(write(holder));
      if (outcome === "lost") {
        say(`the fleet's slot ${ref.name} was given to another node before this one had finished`);
        return;
      }
      if (outcome instanceof KubeError) say(`the fleet's slot ${ref.name} could not be renewed: ${outcome.message}`);
    }
  }

  const renewing = renew();
  return {
    name: ref.name,
    release: async () => {
      ended.abort();
      await renewing;
      const outcome = await orKubeError(write(""));
      if (outcome instanceof KubeError)
        say(`the fleet's slot ${ref.name} could not be given back and runs out by itself: ${outcome.message}`);
    },
  };
}

function wishOf(holder: string, { now }: Timing): LeaseWish {
  return { holder, durationSeconds: DURATION_SECONDS, now: now() };
}
