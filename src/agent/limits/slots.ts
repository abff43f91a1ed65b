import * as v from "valibot";
import type { Api } from "../../kube/api.ts";
import { withApi } from "../../kube/cluster-credentials.ts";
import { KubeError, orKubeError, unlessMissing } from "../../kube/errors.ts";
import type { FleetPolicy } from "./breaker.ts";
import type { ClusterUse, Timing } from "./timing.ts";

/** A heal takes seconds; a holder that has not renewed for this long is dead. */
const DURATION_SECONDS = 60;
const RENEW_EVERY_MS = 20_000;
const REQUEST_MS = 2000;
const MAX_ATTEMPTS = 3;

export type Slots = ReturnType<typeof openSlots>;

/**
 * Slots for nodes that heal disruptively, as Leases: `unghost-heal-0` and so on. The holder is a node: it has one heal
 * at a time by its own lock, so a restarted agent takes over the slot of the previous one.
 */
export function openSlots(options: ClusterUse) {
  const { nodeName, timing } = options;
  const isDead = expiryTracker(timing);
  return {
    /** Requests one of the fleet's slots, without a retry; throws a KubeError if the API does not answer. */
    take: async (api: Api, { slots, namespace }: Pick<FleetPolicy, "slots" | "namespace">) => {
      const by = new Set<string>();
      // Starts at a random slot to avoid conflicts.
      const first = Math.floor(timing.random() * slots);
      for (let index = 0; index < slots; index++) {
        const ref = { namespace, name: `unghost-heal-${(first + index) % slots}` };
        const seen = await getLease(api, ref);
        const holder = seen?.spec.holderIdentity ?? "";
        if (seen !== undefined && holder !== "" && holder !== nodeName() && !isDead(ref.name, seen)) {
          by.add(holder);
          continue;
        }
        const lease = await writeLease(api, ref, seen, held(nodeName(), timing));
        if (lease !== undefined) return { kind: "held", slot: holdSlot(ref, lease, options) } as const;
      }
      return { kind: "taken", by: [...by] } as const;
    },
  };
}

/**
 * Like leader election in Kubernetes: a holder is dead if its Lease did not change for its whole duration by the
 * watcher's own clock. Wall clocks of different machines are never compared.
 */
function expiryTracker({ clock }: Timing): (name: string, lease: Lease) => boolean {
  const firstSeen = new Map<string, { readonly version: string; readonly atMs: number }>();
  return (name, { metadata: { resourceVersion: version }, spec }) => {
    const before = firstSeen.get(name);
    if (before?.version === version)
      return clock() - before.atMs > (spec.leaseDurationSeconds || DURATION_SECONDS) * 1000;
    firstSeen.set(name, { version, atMs: clock() });
    return false;
  };
}

function holdSlot(ref: LeaseRef, taken: Lease, { openCluster, nodeName, timing, warn }: ClusterUse) {
  const ended = new AbortController();
  const holder = nodeName();
  let lease = taken;

  /** After a write whose answer got lost our version is outdated: then only the holder's name decides. */
  async function write(newHolder: string): Promise<"written" | "lost"> {
    return await withApi(openCluster, REQUEST_MS, async (api) => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const written = await writeLease(api, ref, lease, held(newHolder, timing));
        if (written !== undefined) {
          lease = written;
          return "written";
        }
        const current = await getLease(api, ref);
        if (current?.spec.holderIdentity !== holder) return "lost";
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
        warn("fleet slot taken by another node before this one finished", ref.name);
        return;
      }
      if (outcome instanceof KubeError)
        warn("renewing the fleet slot failed; retrying", `${ref.name}: ${outcome.message}`);
    }
  }

  const renewing = renew();
  return {
    name: ref.name,
    /** Releases the slot; without an API server it expires. Never throws. */
    release: async (): Promise<void> => {
      ended.abort();
      await renewing;
      const outcome = await orKubeError(write(""));
      if (outcome instanceof KubeError)
        warn("releasing the fleet slot failed; it expires", `${ref.name}: ${outcome.message}`);
    },
  };
}

function held(holder: string, { now }: Timing): LeaseContent {
  return { holder, durationSeconds: DURATION_SECONDS, now: now() };
}

const text = v.nullish(v.string(), "");

const LeaseSchema = v.object({
  metadata: v.object({ resourceVersion: v.string(), annotations: v.nullish(v.record(v.string(), v.string()), {}) }),
  spec: v.nullish(
    v.object({
      /** Empty without a holder. */
      holderIdentity: text,
      leaseDurationSeconds: v.nullish(v.number(), 0),
      acquireTime: text,
      renewTime: text,
      leaseTransitions: v.nullish(v.number(), 0),
    }),
    {},
  ),
});

export type Lease = Readonly<v.InferOutput<typeof LeaseSchema>>;

interface LeaseRef {
  readonly namespace: string;
  readonly name: string;
}

interface LeaseContent {
  /** Empty to release it. */
  readonly holder: string;
  readonly durationSeconds: number;
  readonly now: Date;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Bypasses the server's cache; returns undefined if it does not exist. */
export async function getLease(api: Api, ref: LeaseRef): Promise<Lease | undefined> {
  const object = await unlessMissing(api.get(`${leasesPath(ref)}/${ref.name}`));
  return object === undefined ? undefined : toLease(object);
}

/** Only on the version that was read; returns undefined on a conflict. */
export async function writeLease(
  api: Api,
  ref: LeaseRef,
  seen: Lease | undefined,
  content: LeaseContent,
): Promise<Lease | undefined> {
  const body = leaseObject(ref, seen, content);
  const path = leasesPath(ref);
  const writing = seen === undefined ? api.create(path, body) : api.replace(`${path}/${ref.name}`, body);
  const answer = await orKubeError(writing);
  if (!(answer instanceof KubeError)) return toLease(answer);
  if (answer.kind === "conflict") return undefined;
  throw answer;
}

function leaseObject(ref: LeaseRef, seen: Lease | undefined, content: LeaseContent): object {
  const { holder, durationSeconds, now, annotations = seen?.metadata.annotations ?? {} } = content;
  const before = seen?.spec;
  const isSameHolder = before?.holderIdentity === holder;
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { ...ref, annotations, resourceVersion: seen?.metadata.resourceVersion },
    spec: {
      // Omitted instead of empty: newer servers refuse an empty name.
      ...(holder === "" ? {} : { holderIdentity: holder }),
      leaseDurationSeconds: durationSeconds,
      acquireTime: isSameHolder && before.acquireTime !== "" ? before.acquireTime : microTime(now),
      renewTime: microTime(now),
      leaseTransitions: (before?.leaseTransitions ?? 0) + (isSameHolder ? 0 : 1),
    },
  };
}

/** Times of Leases have six fraction digits, and a server refuses any other number. */
function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}

function leasesPath({ namespace }: LeaseRef): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
}

function toLease(object: unknown): Lease {
  const result = v.safeParse(LeaseSchema, object);
  if (!result.success) throw new KubeError("unreadable", "the API server's answer is no Lease");
  return result.output;
}
