/** Users script against these. 0, 1 and 2 are also the protocol of a node-problem-detector plugin: frozen. */
export const ExitCode = {
  /** scan: healthy. heal: nothing left. explain: recognised. */
  ok: 0,
  /** scan: findings, or failures that kubelet reports (degraded). heal: something left. explain: not recognised. */
  findings: 1,
  /** The scan failed, or its result is unknown. */
  unknown: 2,
  /** Refused: needs --yes, paused, or a guard. agent: another agent runs on this node. */
  refused: 3,
  usage: 64,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
