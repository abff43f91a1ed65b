import type { Api } from "../../kube/api.ts";
import { attacherLease } from "../../kube/attacher-lease.ts";
import { type ApiAttachment, attacherFinalizer } from "../../kube/volume-attachments.ts";
import type { Interruption } from "../execution/interruption.ts";
import type { Sleep } from "../execution/waits.ts";
import { readVolumeUse, type VolumeUseTools } from "./read-volume-use.ts";
import type { InUseCode, UnreadCode } from "./volume-use.ts";

export interface PollTools {
  readonly sleep: Sleep;
  readonly interruption: Pick<Interruption, "stop">;
}

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

/** Whether an attachment may be deleted, and who waits for the one that the cluster makes in its place. */
export type DeletionProof =
  | { readonly kind: "proven"; readonly awaitedBy: readonly string[] }
  | ({ readonly kind: "refused" } & Objection);

/** Why an attachment must stay. */
export interface Objection {
  readonly code: ObjectionCode;
  readonly reason: string;
}

/**
 * Why the attacher cannot be relied on; undefined when it was seen to renew its lease just now. Two readings that
 * differ prove that without trusting anybody's clock.
 */
export async function attacherAnswers(api: Api, attacher: string, tools: PollTools): Promise<Objection | undefined> {
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

/** Proves that nothing and nobody uses the attachment's volume. */
export async function proveDeletable(
  api: Api,
  attachment: ApiAttachment,
  meant: Meant,
  tools: VolumeUseTools,
): Promise<DeletionProof> {
  const objection = objectionToObject(attachment, meant);
  if (objection !== undefined) return { kind: "refused", ...objection };
  const use = await readVolumeUse(api, attachment, tools);
  switch (use.kind) {
    case "unused":
      return { kind: "proven", awaitedBy: use.awaitedBy };
    case "unidentified":
      return {
        kind: "refused",
        code: "volume-unidentified",
        reason: `who uses the volume cannot be told: ${use.reason}`,
      };
    case "in-use":
    case "unknown":
      return { kind: "refused", code: use.code, reason: use.reason };
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
