import { valueOr } from "../host/source.ts";
import { isFullId, type SandboxId } from "../node/types/ids.ts";
import { predatesStart } from "./ending.ts";
import type { Evidence } from "./finding.ts";
import { containerdBehaviour } from "./versions.ts";
import { type AboutId, cacheFilesOf, isRecorded, type NodeView } from "./view.ts";

/** An id that only files contain: neither the runtime nor a process has it. */
export interface UnknownId {
  readonly id: SandboxId;
  readonly about: AboutId;
}

/**
 * Ids of sandboxes that are gone. Empty if that is unknown: without the runtime's records an unlisted id may belong to
 * a sandbox that is being created. Other tools use the same directories with other id formats (nerdctl:
 * `<namespace>-<id>`), which are ignored.
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
    .filter(({ id, about }) => isCarriedByFilesOnly(about) && !others?.has(id) && !mayBeInFlight(about, view));
}

/**
 * The sources that were read about such an id and do not have it. Only containerd has readable records; CRI-O has none.
 */
export function evidenceOfAbsence({ snapshot }: NodeView): readonly Evidence[] {
  const unrecorded: Evidence = { source: "containerd", fact: "no record has that id" };
  return [
    { source: "cri", fact: "the runtime lists no such sandbox" },
    ...(snapshot.containerd.status === "read" ? [unrecorded] : []),
    { source: "processes", fact: "no process carries that id" },
  ];
}

function isCarriedByFilesOnly(about: AboutId): boolean {
  const lives = about.plugins.length > 0 || about.shims.length > 0 || about.pids.length > 0;
  return !isRecorded(about) && !lives && about.containers.length === 0;
}

/**
 * Whether the runtime writes a record before it calls any plugin, and its records were read: then an id without a
 * record is not being created.
 */
export function recordsComeFirst({ snapshot }: NodeView): boolean {
  const { name, version } = snapshot.runtime;
  if (snapshot.containerd.status !== "read" || !name.startsWith("containerd")) return false;
  return containerdBehaviour(version)?.recordsBeforeAdd === true;
}

/**
 * If records do not come first, only the age can prove it; the same with a daemon that continues after the runtime's
 * timeout.
 */
function mayBeInFlight(about: AboutId, view: NodeView): boolean {
  if (recordsComeFirst(view) && !daemonMayWriteLate(about, view)) return false;
  const { snapshot, policy } = view;
  const files = [...about.leases, ...cacheFilesOf(about)];
  const youngest = Math.max(...files.map((file) => file.modifiedAt.getTime()));
  const isYoung = snapshot.observedAt.getTime() - youngest < policy.inflightGraceMs;
  return isYoung && !isFromBeforeBoot(youngest, view);
}

/**
 * Thick multus runs delegates in its daemon, which completes an ADD long after the timeouts of kubelet and runtime, and
 * then writes its caches. While it works on other sandboxes, this one may be next in its rollback.
 */
function daemonMayWriteLate(about: AboutId, { snapshot }: NodeView): boolean {
  const multus = valueOr(snapshot.cni.conf, undefined)?.multus;
  const dir = valueOr(snapshot.cni.multus, undefined)?.dir;
  if (multus?.thick !== true || dir === undefined) return false;
  return [...about.results, ...(about.multus === undefined ? [] : [about.multus])].some(({ path }) =>
    path.startsWith(`${dir}/`),
  );
}

/** A clock that is corrected while pods already start moves the boot time past files of this boot. */
const CLOCK_SLACK_MS = 60_000;

/** No creation survives a boot. A live pod that is dated before the boot shows that the clock was set since. */
function isFromBeforeBoot(writtenMs: number, view: NodeView): boolean {
  const { boot } = view.snapshot;
  if (boot.status !== "read" || writtenMs >= boot.value.startedAt.getTime() - CLOCK_SLACK_MS) return false;
  return !view.sandboxes.some((sandbox) => sandbox.state === "ready" && predatesStart(sandbox, view) === "machine");
}
