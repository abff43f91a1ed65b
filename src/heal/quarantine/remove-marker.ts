import { unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { hasContent, lookAt } from "../files/file-identity.ts";
import { holdDirectory } from "../files/held-directory.ts";
import type { JournalAction } from "../journal/entry.ts";
import type { Settled } from "../journal/settle-quarantine.ts";

/** multus never removes the marker it is given, and a later pod must not meet it: gone, unless somebody rewrote it. */
export async function removeMarker(
  hostRoot: string,
  marker: Pick<Extract<JournalAction, { kind: "write-marker" }>, "path" | "sha256">,
): Promise<Settled> {
  const parent = holdDirectory(hostRoot, dirname(marker.path));
  if (!parent.ok) return { how: "unsettled", detail: parent.refusal.message };
  const absent = { how: "rolled-back", detail: `The marker ${marker.path} is not there.` } as const;
  if (parent.value === undefined) return absent;
  try {
    const entry = parent.value.entry(basename(marker.path));
    const found = lookAt(entry);
    if (found.what === "nothing") return absent;
    const ours =
      found.what === "file" && (await hasContent(entry, { sha256: marker.sha256, size: found.identity.size }));
    if (!ours) return { how: "interrupted", detail: `${marker.path} is no longer our marker and was left as it is.` };
    await unlink(entry);
    await parent.value.sync();
    return { how: "rolled-back", detail: `The marker ${marker.path} was removed.` };
  } finally {
    parent.value.close();
  }
}
