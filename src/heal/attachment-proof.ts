import type { Api } from "../kube/api.ts";
import { attacherLease } from "../kube/attacher-lease.ts";
import { type ApiAttachment, attacherFinalizer, listAttachments } from "../kube/volume-attachments.ts";
import { getVolume, usersOfClaim } from "../kube/volumes.ts";
import { mountPoints } from "./mount-points.ts";
import type { NodeTools } from "./node-tools.ts";
import { sha256Of } from "./sha256.ts";

const POLL_MS = 1000;
/** Attachers renew every 5 s; a lease that lies still for twice its own length belongs to nobody. */
const LEASE_LENGTHS = 2;

/**
 * Why the attacher cannot be relied on; undefined when it was seen to renew its lease just now. Two readings that
 * differ prove that without trusting anybody's clock.
 */
export async function attacherAnswers(api: Api, attacher: string, tools: NodeTools): Promise<string | undefined> {
  const first = await attacherLease(api, attacher, { fresh: true });
  if (first === undefined)
    return `whether the attacher ${attacher} works cannot be told: it holds no lease external-attacher-leader-…`;
  const deadline = performance.now() + first.durationSeconds * LEASE_LENGTHS * 1000;
  while (performance.now() < deadline && !tools.interruption.stop.aborted) {
    await tools.sleep(POLL_MS);
    const now = await attacherLease(api, attacher, { fresh: true });
    if (now !== undefined && now.renewedAt.getTime() !== first.renewedAt.getTime()) return undefined;
  }
  return `the attacher ${attacher} does not answer: nobody renews its lease ${first.name} (last ${first.renewedAt.toISOString()} by ${first.holder})`;
}

interface Meant {
  readonly node: string;
  readonly volume: string;
}

/** Why this attachment must stay; undefined when nothing and nobody uses it. */
export async function objectionToDeleting(
  api: Api,
  attachment: ApiAttachment,
  { node, volume: name }: Meant,
  tools: NodeTools,
): Promise<string | undefined> {
  const objection = objectionToObject(attachment, { node, volume: name });
  if (objection !== undefined) return objection;
  const [volume, all] = await Promise.all([getVolume(api, name), listAttachments(api, { fresh: true })]);
  const elsewhere = all.find((other) => other.volume === name && other.node !== node && other.attached);
  if (elsewhere !== undefined)
    return `the volume is attached to ${elsewhere.node}: it must be detached there first, which deleting this does not do`;
  if (volume.claim === undefined || volume.csi === undefined)
    return `who uses ${name} cannot be told: it has ${volume.claim === undefined ? "no claim" : "no CSI volume"}`;
  const { claim } = volume;
  const user = (await usersOfClaim(api, claim)).find((pod) => pod.node !== undefined && pod.node !== node);
  if (user !== undefined) return `the pod ${claim.namespace}/${user.name} uses the volume on ${user.node}`;
  return await mountedHere(name, volume.csi.volumeHandle, tools);
}

function objectionToObject(attachment: ApiAttachment, { node, volume }: Meant): string | undefined {
  if (attachment.node !== node || attachment.volume !== volume) return "it is about another node or volume by now";
  if (attachment.attached) return "the volume is attached by now";
  const finalizers = attachment.finalizers.join(", ");
  if (attachment.deleting) return `its deletion was asked for before, and waits for ${finalizers || "the API server"}`;
  const foreign = attachment.finalizers.find((one) => one !== attacherFinalizer(attachment.attacher));
  return foreign === undefined ? undefined : `${foreign} holds it, which is not its attacher's finalizer`;
}

/**
 * Kubelet mounts a CSI volume below directories named after the PersistentVolume (older kubelets, and in every pod) or
 * the hash of its handle (1.24 on), wherever its root is.
 */
async function mountedHere(volume: string, handle: string, tools: NodeTools): Promise<string | undefined> {
  const mounts = await mountPoints(tools);
  if (mounts === undefined) return "whether the volume is mounted here cannot be told: the mount table cannot be read";
  const names = new Set([volume, sha256Of(handle)]);
  const mounted = mounts.find((path) => path.split("/").some((part) => names.has(part)));
  return mounted === undefined ? undefined : `the volume is mounted here, at ${mounted}`;
}
