/** The node's kubelet does not tell its version without credentials, so these are told and not compared. */
export const KUBELET = {
  /** From here on sandboxes are ordered by their attempt; before, by creation time, which a clock step turns around. */
  ordersSandboxesByAttemptFrom: "1.35",
} as const;
