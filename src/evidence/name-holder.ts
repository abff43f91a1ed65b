import type { SandboxState } from "../snapshot/types.ts";

/** What is known about Y when the runtime reports that a name is reserved for Y. */
export interface HolderFacts {
  readonly listed: SandboxState | undefined;
  readonly recorded: boolean;
  /** A CNI plugin process carries its id. */
  readonly pluginRuns: boolean;
}

/**
 * - `live`: the sandbox is Ready; kubelet's view is wrong. Never remove it.
 * - `ghost`: listed and dead; it can be stopped and removed through the runtime.
 * - `in-flight`: its creation has not ended; there is nothing to remove, only something to end or to wait for.
 * - `memory-only`: neither listed nor recorded: in flight before its first write, or leaked inside the runtime, which
 *   only a restart of the runtime clears.
 */
export type Holder = "live" | "ghost" | "in-flight" | "memory-only";

/** The first decision about any "name X is reserved for Y". */
export function holderOf({ listed, recorded, pluginRuns }: HolderFacts): Holder {
  if (listed === "ready") return "live";
  if (listed === "notReady") return "ghost";
  if (recorded || pluginRuns) return "in-flight";
  return "memory-only";
}
