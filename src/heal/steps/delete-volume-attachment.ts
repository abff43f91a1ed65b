import type { Finding } from "../../evidence/finding.ts";
import type { Step } from "../../evidence/step.ts";
import type { Api } from "../../kube/api.ts";
import type { ApiAttachment } from "../../kube/cluster-facts.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { deleteAttachment, getAttachment, listAttachments } from "../../kube/volume-attachments.ts";
import { attacherAnswers, type PollTools, proveDeletable, type VolumeUseTools } from "../storage/attachment-proof.ts";
import { failed, type JournalTools, journaled, refused, type StepResult } from "./step-result.ts";
import { type ApiTools, withApi } from "./with-api.ts";

export interface DeleteVolumeAttachmentTools extends JournalTools, ApiTools, VolumeUseTools, PollTools {}

type DeleteStep = Extract<Step, { kind: "delete-volume-attachment" }>;

/** For all requests to the cluster: proof, deletion, and the attacher's next attempt. */
const DEADLINE_MS = 360_000;
const GONE_MS = 60_000;
const POLL_MS = 1000;
/** The journal keeps the whole object, which normally has a few kilobytes. */
const LARGEST_OBJECT = 64 * 1024;

/** Deletes an unused VolumeAttachment, so that the cluster creates it again. Finalizers are never removed. */
export async function deleteVolumeAttachment(
  step: DeleteStep,
  finding: Finding,
  tools: DeleteVolumeAttachmentTools,
): Promise<StepResult> {
  return await withApi(tools, DEADLINE_MS, (api) => deleteIn(api, step, finding, tools));
}

async function deleteIn(
  api: Api,
  step: DeleteStep,
  finding: Finding,
  tools: DeleteVolumeAttachmentTools,
): Promise<StepResult> {
  const before = await getAttachment(api, step.name);
  if (before === undefined || before.attachment.uid !== step.uid) return { kind: "unneeded" };
  const silence = await attacherAnswers(api, before.attachment.attacher, tools);
  if (silence !== undefined) return { kind: "refused", ...silence };
  // Watching the attacher took a while: the object is checked again right before the deletion.
  const found = await getAttachment(api, step.name);
  if (found === undefined || found.attachment.uid !== step.uid) return { kind: "unneeded" };
  const { object, attachment } = found;
  const proof = await proveDeletable(api, attachment, step, tools);
  if (proof.kind === "refused") return proof;
  if (JSON.stringify(object).length > LARGEST_OBJECT) return refused({ code: "object-too-large" });
  const { kind, name, uid } = step;
  return await journaled(tools, finding, { kind, name, uid, object }, async () => {
    try {
      // Journaling took a while, too: a volume that is in use by now stays.
      const last = await proveDeletable(api, attachment, step, tools);
      if (last.kind === "refused") return last;
      await deleteAttachment(api, attachment);
      const gone = await untilGone(api, step, tools);
      return gone.kind === "done" ? await seenAttached(api, attachment, last.awaitedBy, tools) : gone;
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      if (error.kind === "conflict") return refused({ code: "attachment-changed" });
      return failed({ code: "api-error", message: error.message });
    }
  });
}

async function untilGone(api: Api, { name, uid }: DeleteStep, tools: PollTools): Promise<StepResult> {
  for (let waited = 0; ; waited += POLL_MS) {
    const now = await getAttachment(api, name);
    if (now === undefined || now.attachment.uid !== uid) return { kind: "done" };
    if (waited >= GONE_MS || tools.interruption.stop.aborted) {
      return failed({ code: "attachment-still-there", finalizers: now.attachment.finalizers });
    }
    await tools.sleep(POLL_MS);
  }
}

/** The attach/detach controller's maximum back-off for one volume is 2 min 2 s. */
const AWAITED_MS = 130_000;
/** Without a waiting pod, only an unknown component would create it again, and would do so at once. */
const UNAWAITED_MS = 5000;
/** An attacher's attempt times out after 15 s by default. */
const TRY_MS = 60_000;

/**
 * Verifies the deletion by its effect: the attachment that the cluster creates instead is attached. The deletion had no
 * effect if the attacher's next attempt fails again.
 */
async function seenAttached(
  api: Api,
  deleted: ApiAttachment,
  awaitedBy: readonly string[],
  tools: PollTools,
): Promise<StepResult> {
  const isAwaited = awaitedBy.length > 0;
  let remade: ApiAttachment | undefined;
  for (let left = isAwaited ? AWAITED_MS : UNAWAITED_MS; left > 0; left -= POLL_MS) {
    const all = await listAttachments(api);
    const now = all.find(
      ({ node, volume, uid }) => node === deleted.node && volume === deleted.volume && uid !== deleted.uid,
    );
    if (now?.attached) return { kind: "done", detail: `${now.name} was made again and is attached` };
    if (now?.error !== undefined)
      return {
        kind: "failed",
        code: "attach-fails-again",
        reason: `the cluster made ${now.name} again, and its attacher still fails: ${now.error}`,
      };
    // From here on the attacher has its own timeout.
    if (now !== undefined && remade === undefined) left = TRY_MS;
    remade = now ?? remade;
    if (tools.interruption.stop.aborted)
      return { kind: "failed", code: "interrupted", reason: "the run ended before the attacher tried again" };
    await tools.sleep(POLL_MS);
  }
  if (remade !== undefined)
    return {
      kind: "failed",
      code: "not-attached-again",
      reason: `the cluster made ${remade.name} again, and ${TRY_MS / 1000} s later it is neither attached nor failed: see what ${remade.attacher} logs`,
    };
  if (!isAwaited)
    return { kind: "done", detail: "no pod of this node waits for the volume, and no controller asked for it again" };
  return {
    kind: "failed",
    code: "not-made-again",
    reason: `${awaitedBy.join(", ")} still waits for the volume, and the cluster has not made the attachment again after ${AWAITED_MS / 1000} s: see what kube-controller-manager logs`,
  };
}
