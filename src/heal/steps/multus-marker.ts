import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Finding } from "../../classes/finding.ts";
import { multusVariant } from "../../classes/multus-variants.ts";
import type { Step } from "../../classes/step.ts";
import { MULTUS } from "../../classes/versions/multus.ts";
import { resolveOnHost } from "../../snapshot/host-paths.ts";
import { canonicalPath } from "../host-path.ts";
import { multusMajor } from "../multus-version.ts";
import type { NodeTools } from "../node-tools.ts";
import { proveDead } from "../prove.ts";
import { removeMarker } from "../remove-marker.ts";
import { sha256Of } from "../sha256.ts";
import { reasonFor, type StepResult } from "../step-result.ts";
import { describeError, errorCode } from "../system-error.ts";

/**
 * Not JSON, on purpose: from 4.0 on multus takes a cache file that it cannot parse as "cannot properly delete", calls
 * no delegate and reports success, so that the runtime can go on and release the name by its own path.
 */
const MARKER = "unghost: the delegates of this sandbox are not to be called again\n";

/** Puts the marker where multus looks; it is taken away again when the action ends, however it ends. */
export async function multusMarker(
  { sandboxId, dir }: Extract<Step, { kind: "multus-marker" }>,
  finding: Finding,
  tools: NodeTools,
): Promise<StepResult> {
  // Where a marker changes nothing the removal is tried without one: it may well succeed.
  if (!canUseMarker(tools)) return { kind: "unneeded" };
  const proof = await proveDead(sandboxId, tools);
  if (proof.state === "gone") return { kind: "unneeded" };
  if (proof.state === "alive") return { kind: "refused", reason: `not dead any more: ${proof.because}` };

  const path = canonicalPath(tools.hostRoot, join(dir, sandboxId));
  const sha256 = sha256Of(MARKER);
  const begun = await tools.journal.begin({ ...reasonFor(finding), action: { kind: "write-marker", path, sha256 } });
  if (!begun.ok) return { kind: "refused", reason: begun.refusal.message };
  const journalId = begun.value;
  try {
    await writeNew(resolveOnHost(tools.hostRoot, path, "keep"));
  } catch (error) {
    const reason =
      errorCode(error) === "EEXIST"
        ? `${path} is there by now, so multus remembers its delegates after all`
        : `the marker ${path} could not be written: ${describeError(error)}`;
    await tools.journal.done(journalId, "refused", reason);
    return { kind: "refused", reason, journalId };
  }
  return {
    kind: "done",
    journalId,
    cleanUp: async () => {
      const removed = await removeMarker(tools.hostRoot, { path, sha256 });
      // Where it could not be removed the entry stays open: the next run tries again and says so.
      if (removed.how !== "unsettled") await tools.journal.done(journalId, "healed", removed.detail);
    },
  };
}

/** Thin multus reads it from 4.0 on; an older one, or one whose version is not known, fails on it as without. */
function canUseMarker({ conf, binDirs, hostRoot }: NodeTools): boolean {
  if (conf?.multus === undefined || !multusVariant(conf.multus).failedDelBlocksRemoval) return false;
  const major = multusMajor(binDirs.map((dir) => resolveOnHost(hostRoot, join(dir, "multus"), "follow")));
  return major !== undefined && major >= MULTUS.markerReadFrom;
}

async function writeNew(path: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(path, flags, 0o600);
  try {
    await file.writeFile(MARKER);
    await file.sync();
  } finally {
    await file.close();
  }
}
