import type { Api } from "./api.ts";
import { type AttacherLease, attacherLease } from "./attacher-lease.ts";
import { KubeError, orKubeError, unlessMissing } from "./kube-error.ts";
import { type ApiAttachment, listAttachments } from "./volume-attachments.ts";
import { type ApiVolume, getVolume } from "./volumes.ts";

/** A volume that is to be attached to this node and is not, or to be detached and is not, with what depends on it. */
export interface UnattachedVolume extends ApiAttachment {
  readonly claim?: NonNullable<ApiVolume["claim"]>;
  /** Other nodes that the same volume is attached to. */
  readonly attachedTo: readonly string[];
  readonly lease?: AttacherLease;
  /** What could not be learnt, and why. */
  readonly unknown: readonly string[];
}

/** Each costs requests: a node that waits for more than this has one trouble, not that many. */
const MOST_FOLLOWED = 20;

/** Each has a volume and an attacher to ask for. */
export const MOST_LOOKUPS = 2 * MOST_FOLLOWED;

/** How far attachments are followed to their volumes and attachers, each of which costs a request. */
export interface Following {
  /** Requests that may be made for single objects; asked when the first is wanted. */
  readonly most: () => number;
  /** Volumes that were looked up before: whose claim one is does not change while it is wanted anywhere. */
  readonly volumes: Map<string, ApiVolume>;
  /** Whether to list attachments although no pod waits: one that hangs in its deletion may have no pod any more. */
  readonly unprompted: () => boolean;
}

interface Waiting {
  readonly phase?: string;
  readonly terminating: boolean;
  readonly claims?: readonly string[];
}

/**
 * The volumes that this node waits for. The list is the whole cluster's, so without a pod here that waits for one it is
 * read only now and then; kubelet's own credentials may not read it at all. Undefined where there was no need to ask.
 */
export async function readUnattached(
  api: Api,
  node: string,
  pods: readonly Waiting[],
  following: Following,
): Promise<readonly UnattachedVolume[] | undefined> {
  const isAwaited = pods.some(
    ({ phase, terminating, claims }) => claims !== undefined && (phase === "Pending" || terminating),
  );
  if (!isAwaited && !following.unprompted()) return undefined;
  const all = (await unlessMissing(listAttachments(api, { fresh: false }))) ?? [];
  const here = all
    .filter((one) => one.node === node && (!one.attached || one.deleting))
    .toSorted((one, other) => Number(one.attached) - Number(other.attached))
    .slice(0, MOST_FOLLOWED);
  if (!isAwaited && here.length === 0) return undefined;
  const ask = withinBudget(following.most());
  // Volumes come first: what was learnt of them is kept, and the next look has its requests for the leases.
  const volumes = await lookUp(
    here.flatMap(({ volume }) => volume ?? []),
    async (name) => {
      const volume = following.volumes.get(name) ?? (await ask(() => getVolume(api, name)));
      if (!(volume instanceof KubeError)) following.volumes.set(name, volume);
      return volume;
    },
  );
  const leases = await lookUp(
    here.map(({ attacher }) => attacher),
    (attacher) => ask(() => attacherLease(api, attacher, { fresh: false })),
  );
  return here.map((one) => {
    const volume = one.volume === undefined ? undefined : volumes.get(one.volume);
    const lease = leases.get(one.attacher);
    const elsewhere = all.filter(
      (other) => other.attached && other.node !== node && one.volume !== undefined && other.volume === one.volume,
    );
    return {
      ...one,
      ...(volume instanceof KubeError || volume?.claim === undefined ? {} : { claim: volume.claim }),
      attachedTo: elsewhere.map((other) => other.node),
      ...(lease === undefined || lease instanceof KubeError ? {} : { lease }),
      unknown: [
        ...(volume instanceof KubeError ? [`whose claim it is cannot be told: ${volume.message}`] : []),
        ...(lease instanceof KubeError ? [`whether its attacher works cannot be told: ${lease.message}`] : []),
      ],
    };
  });
}

async function lookUp<T>(
  names: readonly string[],
  one: (name: string) => Promise<T | KubeError>,
): Promise<ReadonlyMap<string, T | KubeError>> {
  return new Map(await Promise.all([...new Set(names)].map(async (name) => [name, await one(name)] as const)));
}

function withinBudget(most: number): <T>(asking: () => Promise<T>) => Promise<T | KubeError> {
  let left = most;
  return async (asking) => {
    left -= 1;
    if (left < 0) return new KubeError("busy", "it was not asked for this time, to spare the API server");
    return await orKubeError(asking());
  };
}
