import { couldConcernSandboxes } from "../classes/index.ts";
import { type ObserveOptions, observe } from "../node/observe.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

export type ObserveNodeOptions = Omit<ObserveOptions, "isRelevantLine">;

/** Observes a node for diagnosis: keeps the log lines that any failure class may match. */
export function observeNode(
  options: ObserveNodeOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Snapshot> {
  return observe({ ...options, isRelevantLine: couldConcernSandboxes }, env);
}
