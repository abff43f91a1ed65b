import type { Api } from "./api.ts";
import { type AttacherLease, attacherLease } from "./attacher-lease.ts";
import { isUnsettled, type NodeVolumes, type ReadAttachments } from "./attachment-reader.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import type { ApiAttachment } from "./volume-attachments.ts";
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
  /** Volumes that were read before: the claim of a volume does not change while it is in use. */
  readonly volumes: Map<string, ApiVolume>;
  readonly attachments: ReadAttachments;
}

interface Waiting {
  readonly phase?: string;
  readonly terminating: boolean;
  readonly claims?: readonly string[];
}

/** The volumes that this node waits for; undefined where there was no need to ask. Kubelet's own credentials may not. */
export async function readUnattached(
  api: Api,
  node: { readonly name: string; readonly volumes?: NodeVolumes },
  pods: readonly Waiting[],
  following: Following,
): Promise<readonly UnattachedVolume[] | undefined> {
  const isAwaited = pods.some(
    ({ phase, terminating, claims }) => claims !== undefined && (phase === "Pending" || terminating),
  );
  const known = await following.attachments(api, {
    node: node.name,
    isAwaited,
    most: following.most(),
    ...(node.volumes === undefined ? {} : { volumes: node.volumes }),
  });
  if (known === undefined) return undefined;
  const here = known.here
    .filter(isUnsettled)
    .toSorted((one, other) => Number(one.attached) - Number(other.attached))
    .slice(0, MOST_FOLLOWED);
  if (!isAwaited && here.length === 0) return undefined;
  const ask = withinBudget(following.most());
  // Volumes come first: what was learnt of them is kept, and the next scan has its requests for the leases.
  const volumes = await readEach(
    here.flatMap(({ volume }) => volume ?? []),
    async (name) => {
      const volume = following.volumes.get(name) ?? (await ask(() => getVolume(api, name)));
      if (!(volume instanceof KubeError)) following.volumes.set(name, volume);
      return volume;
    },
  );
  const leases = await readEach(
    here.map(({ attacher }) => attacher),
    (attacher) => ask(() => attacherLease(api, attacher, { fresh: false })),
  );
  return here.map((one) => {
    const volume = one.volume === undefined ? undefined : volumes.get(one.volume);
    const lease = leases.get(one.attacher);
    return {
      ...one,
      ...(volume instanceof KubeError || volume?.claim === undefined ? {} : { claim: volume.claim }),
      attachedTo: (one.volume === undefined ? undefined : known.elsewhere.get(one.volume)) ?? [],
      ...(lease === undefined || lease instanceof KubeError ? {} : { lease }),
      unknown: [
        ...(volume instanceof KubeError ? [`its claim is unknown: ${volume.message}`] : []),
        ...(lease instanceof KubeError ? [`whether its attacher works is unknown: ${lease.message}`] : []),
      ],
    };
  });
}

async function readEach<T>(
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
