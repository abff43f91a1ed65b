import type { Snapshot } from "../node/types/snapshot.ts";

/** Options of the run that change what counts as a finding. */
export interface DiagnosisPolicy {
  readonly minAgeMs: number;
  /** For a creation or removal of which only the age is known. */
  readonly inflightGraceMs: number;
  /** For one whose caller timed out; missing: see creation-grace.ts. Set if --inflight-grace overrides it. */
  readonly abandonedGraceMs?: number;
  /** How long a volume may wait to be attached. */
  readonly volumeAttachmentAgeMs: number;
  readonly only: readonly string[];
  readonly skip: readonly string[];
}

/**
 * The policy for a later scan of the same run. What started after the first scan is in flight, however short the grace is:
 * such as the DEL by which the runtime rolls back what the run itself has ended.
 */
export function duringRun<Policy extends DiagnosisPolicy>(
  policy: Policy,
  first: Pick<Snapshot, "boot"> | undefined,
  now: Pick<Snapshot, "boot">,
): Policy {
  if (first?.boot.status !== "read" || now.boot.status !== "read") return policy;
  const runMs = (now.boot.value.uptimeSeconds - first.boot.value.uptimeSeconds) * 1000;
  const { inflightGraceMs, abandonedGraceMs } = policy;
  return {
    ...policy,
    inflightGraceMs: Math.max(inflightGraceMs, runMs),
    ...(abandonedGraceMs === undefined ? {} : { abandonedGraceMs: Math.max(abandonedGraceMs, runMs) }),
  };
}
