import type { Source } from "../host/source.ts";
import type { ContainerdFacts, ProcessFacts } from "../node/types/runtime.ts";

/** Which source still refers to an id. An id without a reference is a leak. */
export type Reference =
  | "runtime-list"
  | "containerd-record"
  | "sandbox-store"
  | "processes-unread"
  | "shim"
  | "plugin"
  | "other-runtime"
  | "process";

export interface ReferenceSources {
  readonly isListed: boolean;
  /** Undefined if the runtime is not containerd. */
  readonly containerd: Pick<ContainerdFacts, "records" | "sandboxes"> | undefined;
  readonly processes: Source<Pick<ProcessFacts, "shims" | "plugins" | "byContainer" | "othersIds">>;
}

/** Returns the first reference; undefined if all sources were read and none refers to the id. */
export function referenceTo(id: string, { isListed, containerd, processes }: ReferenceSources): Reference | undefined {
  if (isListed) return "runtime-list";
  if (containerd?.records.some((record) => record.id === id)) return "containerd-record";
  if (containerd?.sandboxes.some((sandbox) => sandbox.id === id)) return "sandbox-store";
  if (processes.status !== "read") return "processes-unread";
  const { shims, plugins, byContainer, othersIds } = processes.value;
  if (shims.some((shim) => shim.id === id)) return "shim";
  if (plugins.some((plugin) => plugin.sandboxId === id)) return "plugin";
  if (othersIds?.has(id)) return "other-runtime";
  return byContainer.has(id) ? "process" : undefined;
}
