/** What the person asked for, as far as it changes what counts as a finding. */
export interface DiagnosisPolicy {
  readonly minAgeMs: number;
  readonly inflightGraceMs: number;
  readonly only: readonly string[];
  readonly skip: readonly string[];
}
