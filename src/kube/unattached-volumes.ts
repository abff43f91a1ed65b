import type { Api } from "./api.ts";
import { type AttacherLease, attacherLease } from "./attacher-lease.ts";
import { KubeError, orKubeError } from "./kube-error.ts";
import { type ApiAttachment, listAttachments } from "./volume-attachments.ts";
import { type ApiVolume, getVolume } from "./volumes.ts";

/** A volume that is to be attached to this node and is not, with what hangs on it. */
export interface UnattachedVolume extends ApiAttachment {
  readonly claim?: NonNullable<ApiVolume["claim"]>;
  /** Other nodes that the same volume is attached to. */
  readonly attachedTo: readonly string[];
  readonly lease?: AttacherLease;
  /** What could not be learnt, and why. */
  readonly unknown: readonly string[];
}

/** Each costs a request: a node that waits for more than this has one trouble, not that many. */
const MOST_FOLLOWED = 20;

interface Waiting {
  readonly phase?: string;
  readonly terminating: boolean;
  readonly claims?: readonly string[];
}

/**
 * The volumes that pods of this node wait for. The list is the whole cluster's, so it is only asked for when a pod here
 * waits for something; kubelet's own credentials may not ask for it at all. Undefined where there was no need to ask.
 */
export async function readUnattached(
  api: Api,
  node: string,
  pods: readonly Waiting[],
): Promise<readonly UnattachedVolume[] | undefined> {
  if (!pods.some(({ phase, terminating, claims }) => claims !== undefined && (phase === "Pending" || terminating)))
    return undefined;
  const all = await orNothing(listAttachments(api, { fresh: false }));
  const here = (all ?? []).filter((one) => one.node === node && !one.attached);
  const leases = new Map<string, Promise<AttacherLease | KubeError | undefined>>();
  const leaseOf = (attacher: string): Promise<AttacherLease | KubeError | undefined> => {
    const asked = leases.get(attacher) ?? orKubeError(attacherLease(api, attacher, { fresh: false }));
    leases.set(attacher, asked);
    return asked;
  };
  return await Promise.all(
    here.slice(0, MOST_FOLLOWED).map(async (one) => {
      const { volume: name, attacher } = one;
      const [volume, lease] = await Promise.all([
        name === undefined ? undefined : orKubeError(getVolume(api, name)),
        leaseOf(attacher),
      ]);
      const elsewhere = (all ?? []).filter(
        (other) => other.attached && other.node !== node && name !== undefined && other.volume === name,
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
    }),
  );
}

/** A server without the storage API has no attachments. */
async function orNothing<T>(asking: Promise<T>): Promise<T | undefined> {
  const answer = await orKubeError(asking);
  if (!(answer instanceof KubeError)) return answer;
  if (answer.kind === "not-found") return undefined;
  throw answer;
}
