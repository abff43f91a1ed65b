import type { Finding } from "../classes/finding.ts";
import { containerdBehaviour } from "../classes/versions/containerd.ts";
import type { Snapshot } from "../snapshot/types.ts";

/** Which upgrade would end which class here. Given only where the running version really has the fault. */
export function adviceFor(snapshot: Snapshot, findings: readonly Finding[]): readonly string[] {
  const { name, version } = snapshot.runtime;
  if (!name.startsWith("containerd")) return [];
  const behaviour = containerdBehaviour(version);
  if (behaviour === undefined) return [];
  const advice: string[] = [];
  const seen = new Set(findings.map((finding) => finding.class));
  if (behaviour.stop === "del-error-blocks") {
    advice.push(
      `containerd ${version}: a failing CNI DEL blocks the removal of a sandbox for ever, even when its network was never set up. From 1.6.37, 1.7.31 and 2.0.8 on it does so only when the network had been set up.`,
    );
  }
  if (behaviour.stop === "del-skipped-without-result" && findings.length > 0) {
    advice.push(
      `containerd ${version}: a sandbox whose network set-up did not finish is removed without CNI DEL, which leaks addresses. Fixed in 1.7.31, 2.0.8, 2.1.7 and 2.2.2.`,
    );
  }
  if (behaviour.corruptResultBlocks && seen.has("libcni-result-cache-corrupt")) {
    advice.push(
      `containerd ${version}: an empty or half-written CNI result file blocks the removal of its sandbox. containerd 2.0 and later tolerate it.`,
    );
  }
  if (behaviour.fatalWithoutMetadata) {
    advice.push(
      `containerd ${version}: a crash in the wrong moment keeps it from starting again ("failed to get metadata for stored sandbox"). Fixed in 2.0.6, 2.1.4 and 2.2.0.`,
    );
  }
  if (behaviour.leaksRecords && seen.has("record-leak-after-late-failure")) {
    advice.push(
      `containerd ${version}: a sandbox that fails late leaves its record behind. Fixed in 2.2.6 and 2.3.3; do not restart containerd before the duplicates are gone.`,
    );
  }
  return advice;
}
