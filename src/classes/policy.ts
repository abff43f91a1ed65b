/** What the person asked for, as far as it changes what counts as a finding. */
export interface DiagnosisPolicy {
  readonly minAgeMs: number;
  readonly inflightGraceMs: number;
  /** How long a volume may wait to be attached. */
  readonly volumeAttachmentAgeMs: number;
  readonly only: readonly string[];
  readonly skip: readonly string[];
}
