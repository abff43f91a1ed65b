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
