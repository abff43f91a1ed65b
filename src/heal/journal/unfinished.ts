import { findStateDir } from "../files/state-dir.ts";
import { readUnsettled } from "./unsettled.ts";

/**
 * Sandboxes whose removal an earlier run began and did not see the end of. A power cut in the middle may leave one
 * behind with its network already released: then nothing on the node shows any more that it is in the way.
 */
export async function unfinishedRemovals(stateDir: string, uid: number): Promise<ReadonlySet<string>> {
  const found = await findStateDir(stateDir, uid);
  if (!found.ok || found.value === undefined) return new Set();
  const records = await readUnsettled(found.value.journal);
  return new Set(
    records.flatMap(({ action, state }) =>
      action.kind === "remove-sandbox" && (state === "open" || state === "interrupted") ? [action.sandboxId] : [],
    ),
  );
}
