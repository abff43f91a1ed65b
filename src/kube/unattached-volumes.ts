import type { Api } from "./api.ts";
import { attacherLease } from "./attacher-lease.ts";
import { isUnsettled, type ReadAttachments } from "./attachment-reader.ts";
import type { NodeVolumes, UnattachedVolume } from "./cluster-facts.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import { type ApiVolume, getVolume } from "./volumes.ts";

/** Each costs requests. A node that waits for more volumes than this has one common cause. */
const MAX_FOLLOWED = 20;

/** Each needs requests for a volume and an attacher. */
export const MAX_LOOKUPS = 2 * MAX_FOLLOWED;

/** Limits the requests for volumes and attachers of attachments. */
export interface Following {
  /** The maximum number of requests for single objects; called before the first one. */
  readonly most: () => number;
  /** Cache of volumes: the claim of a volume does not change while it is in use. */
  readonly volumes: Map<string, ApiVolume>;
  readonly attachments: ReadAttachments;
}

interface Waiting {
  readonly phase?: string;
  readonly terminating: boolean;
  readonly claims?: readonly string[];
}

/**
 * The volumes that this node waits for; undefined if no request was needed. Kubelet's own credentials may not read
 * them.
 */
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
    volumes: node.volumes,
  });
  if (known === undefined) return undefined;
  const here = known.here
    .filter(isUnsettled)
    .toSorted((one, other) => Number(one.attached) - Number(other.attached))
    .slice(0, MAX_FOLLOWED);
  if (!isAwaited && here.length === 0) return undefined;
  const ask = withinBudget(following.most());
  // Volumes first: they are cached, so the next scan can use its requests for the leases.
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
    (attacher) => ask(() => attacherLease(api, attacher)),
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
