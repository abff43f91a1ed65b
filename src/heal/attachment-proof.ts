import type { Api } from "../kube/api.ts";
import { attacherLease } from "../kube/attacher-lease.ts";
import { type ApiAttachment, attacherFinalizer } from "../kube/volume-attachments.ts";
import type { NodeTools } from "./node-tools.ts";
import { readVolumeUse } from "./read-volume-use.ts";
import type { InUseCode, UnreadCode } from "./volume-use.ts";

const POLL_MS = 1000;
/** Attachers renew every 5 s; a lease that lies still for twice its own length belongs to nobody. */
const LEASE_LENGTHS = 2;

export type ObjectionCode =
  | InUseCode
  | UnreadCode
  | "attacher-without-lease"
  | "attacher-silent"
  | "attachment-changed"
  | "attached-by-now"
  | "already-deleting"
  | "foreign-finalizer"
  | "volume-unidentified";

/** Why an attachment must stay. */
export interface Objection {
  readonly code: ObjectionCode;
  readonly reason: string;
}

/**
 * Why the attacher cannot be relied on; undefined when it was seen to renew its lease just now. Two readings that
 * differ prove that without trusting anybody's clock.
 */
export async function attacherAnswers(api: Api, attacher: string, tools: NodeTools): Promise<Objection | undefined> {
  const first = await attacherLease(api, attacher, { fresh: true });
  if (first === undefined)
    return {
      code: "attacher-without-lease",
      reason: `whether the attacher ${attacher} works cannot be told: it holds no lease external-attacher-leader-…`,
    };
  const deadline = performance.now() + first.durationSeconds * LEASE_LENGTHS * 1000;
  while (performance.now() < deadline && !tools.interruption.stop.aborted) {
    await tools.sleep(POLL_MS);
    const now = await attacherLease(api, attacher, { fresh: true });
    if (now !== undefined && now.renewedAt.getTime() !== first.renewedAt.getTime()) return undefined;
  }
  return {
    code: "attacher-silent",
    reason: `the attacher ${attacher} does not answer: nobody renews its lease ${first.name} (last ${first.renewedAt.toISOString()} by ${first.holder})`,
  };
}

interface Meant {
  readonly node: string;
  readonly volume: string;
}

/** Why this attachment must stay; undefined when nothing and nobody uses its volume. */
export async function objectionToDeleting(
  api: Api,
  attachment: ApiAttachment,
  meant: Meant,
  tools: NodeTools,
): Promise<Objection | undefined> {
  const objection = objectionToObject(attachment, meant);
  if (objection !== undefined) return objection;
  const use = await readVolumeUse(api, attachment, tools);
  switch (use.kind) {
    case "unused":
      return undefined;
    case "unidentified":
      return { code: "volume-unidentified", reason: `who uses the volume cannot be told: ${use.reason}` };
    case "in-use":
    case "unknown":
      return { code: use.code, reason: use.reason };
  }
}

function objectionToObject(attachment: ApiAttachment, { node, volume }: Meant): Objection | undefined {
  if (attachment.node !== node || attachment.volume !== volume)
    return { code: "attachment-changed", reason: "it is about another node or volume by now" };
  if (attachment.attached) return { code: "attached-by-now", reason: "the volume is attached by now" };
  const finalizers = attachment.finalizers.join(", ");
  if (attachment.deleting)
    return {
      code: "already-deleting",
      reason: `its deletion was asked for before, and waits for ${finalizers || "the API server"}`,
    };
  const foreign = attachment.finalizers.find((one) => one !== attacherFinalizer(attachment.attacher));
  if (foreign === undefined) return undefined;
  return { code: "foreign-finalizer", reason: `${foreign} holds it, which is not its attacher's finalizer` };
}
