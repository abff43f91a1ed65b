/**
 * - `ghosts`: there are findings. - `degraded`: no finding yet, but kubelet or Kubernetes reports failures that go on.
 * - `unknown`: something that could have shown a ghost was not read. - `healthy`: everything was read, and nothing fails.
 */
export const VERDICTS = ["healthy", "degraded", "ghosts", "unknown"] as const;
export type Verdict = (typeof VERDICTS)[number];
