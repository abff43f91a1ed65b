import { isFullId, type SandboxId } from "../snapshot/ids.ts";
import { containerdBehaviour } from "./versions/containerd.ts";
import type { AboutId, NodeView } from "./view.ts";

/** An id that only files still carry: nothing in the runtime and no process knows it. */
export interface UnknownId {
  readonly id: SandboxId;
  readonly about: AboutId;
}

/**
 * Ids left behind by sandboxes that are gone. Empty where it cannot be told: without the runtime's records an id that
 * is not listed may belong to a sandbox in the making. Other tools share the directories under ids of other forms
 * (nerdctl: `<namespace>-<id>`), and theirs are theirs.
 */
export function unknownIds(view: NodeView): readonly UnknownId[] {
  const { snapshot } = view;
  if (snapshot.cri.status !== "read" || snapshot.processes.status !== "read") return [];
  if (snapshot.containerd.status === "failed") return [];
  return view.unlistedIds
    .filter(isFullId)
    .map((id) => ({ id, about: view.about(id) }))
    .filter(({ about }) => isCarriedByFilesOnly(about) && !mayBeInTheMaking(about, view));
}

function isCarriedByFilesOnly(about: AboutId): boolean {
  const isKnown = about.record !== undefined || about.storeRecord !== undefined;
  const lives = about.plugins.length > 0 || about.shims.length > 0 || about.pids.length > 0;
  return !isKnown && !lives && about.containers.length === 0;
}

/** Whether the runtime writes a record before it calls any plugin, and its records are known: then no record, no creation. */
export function recordsComeFirst({ snapshot }: NodeView): boolean {
  const { name, version } = snapshot.runtime;
  if (snapshot.containerd.status !== "read" || !name.startsWith("containerd")) return false;
  return containerdBehaviour(version)?.recordsBeforeAdd === true;
}

/** Where records do not come first, only age can tell. */
function mayBeInTheMaking(about: AboutId, view: NodeView): boolean {
  if (recordsComeFirst(view)) return false;
  const { snapshot, policy } = view;
  const files = [...about.results, ...about.leases, about.multus, about.flannel].filter((file) => file !== undefined);
  const youngest = Math.max(...files.map((file) => file.modifiedAt.getTime()));
  return snapshot.observedAt.getTime() - youngest < policy.inflightGraceMs;
}
