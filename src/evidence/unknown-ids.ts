import { valueOr } from "../host/source.ts";
import { isFullId, type SandboxId } from "../snapshot/ids.ts";
import { predatesStart } from "./ending.ts";
import type { Evidence } from "./finding.ts";
import { containerdBehaviour } from "./versions/containerd.ts";
import type { AboutId, NodeView } from "./view.ts";

/** An id that only files still carry: nothing in the runtime and no process knows it. */
export interface UnknownId {
  readonly id: SandboxId;
  readonly about: AboutId;
}

/**
 * Ids left behind by sandboxes that are gone. Empty where that is unknown: without the runtime's records an id that
 * is not listed may belong to a sandbox in the making. Other tools share the directories under ids of other forms
 * (nerdctl: `<namespace>-<id>`), and theirs are theirs.
 */
export function unknownIds(view: NodeView): readonly UnknownId[] {
  const { snapshot } = view;
  if (snapshot.cri.status !== "read" || snapshot.processes.status !== "read") return [];
  if (snapshot.containerd.status === "failed") return [];
  // Another runtime on this machine may keep its pods' files in the same directories.
  const others = snapshot.processes.value.othersIds;
  return view.unlistedIds
    .filter(isFullId)
    .map((id) => ({ id, about: view.about(id) }))
    .filter(({ id, about }) => isCarriedByFilesOnly(about) && !others?.has(id) && !mayBeInTheMaking(about, view));
}

/** Who was asked about such an id and does not know it. Only containerd has records to ask; CRI-O has none. */
export function evidenceOfAbsence({ snapshot }: NodeView): readonly Evidence[] {
  const unrecorded: Evidence = { source: "containerd", fact: "no record has that id" };
  return [
    { source: "cri", fact: "the runtime lists no such sandbox" },
    ...(snapshot.containerd.status === "read" ? [unrecorded] : []),
    { source: "processes", fact: "no process carries that id" },
  ];
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

/** Where records do not come first, only age can show it. Nor do they where a daemon goes on after the runtime gave up. */
function mayBeInTheMaking(about: AboutId, view: NodeView): boolean {
  if (recordsComeFirst(view) && !daemonMayWriteLate(about, view)) return false;
  const { snapshot, policy } = view;
  const files = [...about.results, ...about.leases, about.multus, about.flannel].filter((file) => file !== undefined);
  const youngest = Math.max(...files.map((file) => file.modifiedAt.getTime()));
  const isYoung = snapshot.observedAt.getTime() - youngest < policy.inflightGraceMs;
  return isYoung && !isFromBeforeBoot(youngest, view);
}

/**
 * Thick multus runs delegates in its daemon, which finishes an ADD that kubelet and the runtime have long given up, and
 * then writes its caches. While it works on others this one may be next to be rolled back.
 */
function daemonMayWriteLate(about: AboutId, { snapshot }: NodeView): boolean {
  const multus = valueOr(snapshot.cni.conf, undefined)?.multus;
  const dir = valueOr(snapshot.cni.multus, undefined)?.dir;
  if (multus?.thick !== true || dir === undefined) return false;
  return [...about.results, ...(about.multus === undefined ? [] : [about.multus])].some(({ path }) =>
    path.startsWith(`${dir}/`),
  );
}

/** A clock that is set right while pods already start moves the time of boot past files of this boot. */
const CLOCK_SLACK_MS = 60_000;

/** No creation outlasts a boot. A pod that lives and is dated before the boot shows that the clock was set since. */
function isFromBeforeBoot(writtenMs: number, view: NodeView): boolean {
  const { boot } = view.snapshot;
  if (boot.status !== "read" || writtenMs >= boot.value.startedAt.getTime() - CLOCK_SLACK_MS) return false;
  return !view.sandboxes.some((sandbox) => sandbox.state === "ready" && predatesStart(sandbox, view) === "machine");
}
