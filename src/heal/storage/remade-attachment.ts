import type { Api } from "../../kube/api.ts";
import { type ApiAttachment, listAttachments } from "../../kube/volume-attachments.ts";
import type { StepResult } from "../steps/step-result.ts";
import type { PollTools } from "./attachment-proof.ts";

const POLL_MS = 1000;
/** The attach/detach controller pauses at most 2 min 2 s between two tries of one volume. */
const AWAITED_MS = 130_000;
/** Without a pod that waits for it, only somebody unknown would ask for it again, and would do so at once. */
const UNAWAITED_MS = 5000;
/** An attacher gives up one try after 15 s by default. */
const TRY_MS = 60_000;

/**
 * Verifies the deletion of an attachment by its effect: the one that the cluster makes in its place gets attached.
 * Deleting changed nothing where the attacher's next try ends with an error again.
 */
export async function seenAttached(
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
    // From here on it is the attacher's turn, which has a time of its own.
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
    return { kind: "done", detail: "no pod of this node waits for the volume, and nobody asked for it again" };
  return {
    kind: "failed",
    code: "not-made-again",
    reason: `${awaitedBy.join(", ")} still waits for the volume, and the cluster has not made the attachment again after ${AWAITED_MS / 1000} s: see what kube-controller-manager logs`,
  };
}
