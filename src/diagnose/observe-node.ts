import { type ObserveOptions, observe } from "../node/observe.ts";
import type { Snapshot } from "../node/types/snapshot.ts";

export type ObserveNodeOptions = Omit<ObserveOptions, "loadRelevance">;

/** Observes a node for diagnosis: keeps the log lines that any failure class may match. */
export function observeNode(
  options: ObserveNodeOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Snapshot> {
  const loadRelevance = async () => (await import("../classes/index.ts")).couldConcernSandboxes;
  return observe({ ...options, loadRelevance }, env);
}
