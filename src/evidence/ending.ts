import { valueOr } from "../host/source.ts";
import type { ResultFile } from "../node/types/cni.ts";
import { type Container, type Sandbox, ZERO_TIME } from "../node/types/runtime.ts";
import { runtimeReports } from "./reports.ts";
import { containerdBehaviour, multusVariant } from "./versions.ts";
import type { AboutId, NodeView } from "./view.ts";

/** containerd sets these for a container without a task after a restart. */
const CONTAINERD_LOST = { exitCode: 255, reason: "Unknown" } as const;
/**
 * CRI-O sets this exit code, with the reason "Error", for a container whose exit it did not observe; no process exits
 * with it.
 */
const CRIO_LOST_EXIT_CODE = -1;

/** The runtime did not observe the container's exit. */
export function endWasLost({ state, exit }: Pick<Container, "state" | "exit">): boolean {
  if (state === "unknown" || exit?.exitCode === CRIO_LOST_EXIT_CODE) return true;
  return exit?.exitCode === CONTAINERD_LOST.exitCode && exit.reason === CONTAINERD_LOST.reason;
}

/**
 * The runtime observed the exit of all containers: a finished pod, whose logs are still needed. An unreadable exit is
 * neither orderly nor lost: nothing is concluded from it.
 */
export function endedInOrder({ containers }: AboutId): boolean {
  return (
    containers.length > 0 && containers.every((c) => c.exit !== undefined && c.state === "exited" && !endWasLost(c))
  );
}

/** The exit of some containers is unknown, and none is known to be lost. */
export function mayHaveEndedInOrder({ containers }: AboutId): boolean {
  const isUnread = containers.some(({ state, exit }) => state === "exited" && exit === undefined);
  return isUnread && !containers.some(endWasLost);
}

/** Never completely created: Go's zero time, which crictl prints as "292 years ago". */
export function wasNeverCreated(sandbox: Sandbox): boolean {
  return sandbox.createdAt === ZERO_TIME;
}

/** A newer sandbox of the same pod runs: the old one has the containers for `kubectl logs --previous`. */
export function runningSuccessor(sandbox: Sandbox, view: NodeView): Sandbox | undefined {
  const siblings = view.sandboxesOfPod.get(sandbox.pod.uid) ?? [];
  return siblings.find((other) => other.state === "ready" && other.pod.attempt > sandbox.pod.attempt);
}

/**
 * Whether the sandbox was created before the last start of the runtime or the machine, and so died with it. Both times
 * come from the same wall clock; after a clock step in between the result is undefined.
 */
export function predatesStart(sandbox: Sandbox, view: NodeView): "runtime" | "machine" | undefined {
  const { boot, observedAt } = view.snapshot;
  if (wasNeverCreated(sandbox)) return undefined;
  const createdMs = Number(sandbox.createdAt / 1_000_000n);
  if (boot.status === "read" && createdMs < observedAt.getTime() - boot.value.uptimeSeconds * 1000) return "machine";
  const up = view.runtimeUpSeconds;
  if (up !== undefined && createdMs < observedAt.getTime() - up * 1000) return "runtime";
  return undefined;
}

/**
 * Whether CNI still holds state of the sandbox. An orderly stop ends with DEL, which removes cache and address:
 * remaining state means that it was never stopped, or is being stopped now.
 */
export function networkStillHeld(about: AboutId, view: NodeView): string | undefined {
  const [own] = unreleasedResults(about, view);
  // The shim of thick multus answers DEL with success even if its delegates fail: what they hold is a leak.
  const isReleasedForRuntime = own === undefined && (isDelAlwaysAnswered(view) || wasTakenDownLater(about, view));
  const [lease] = isReleasedForRuntime ? [] : about.leases;
  if (lease !== undefined) return `its address ${lease.address} on ${lease.network} is still taken`;
  const cached = about.multus?.isMarker === true ? undefined : about.multus;
  const file = own ?? (isReleasedForRuntime ? undefined : (cached ?? about.flannel));
  return file === undefined ? undefined : `its network was never released: ${file.path} is still there`;
}

/**
 * The runtime's results for which no DEL succeeded. libcni removes only the result of the network that the runtime uses
 * now: one from before the pod network changed outlasts every DEL, and is a leak.
 */
function unreleasedResults(about: AboutId, view: NodeView): readonly ResultFile[] {
  return wasTakenDownLater(about, view) ? [] : runtimesResults(about, view);
}

/** Whether all its results are of an earlier pod network, and it was taken down under the current one. */
function wasTakenDownLater(about: AboutId, view: NodeView): boolean {
  return isOfEarlierNetwork(about, view) && (isReportedReleased(about, view) || isStoppedInOrder(about, view));
}

/** Whether the runtime set it up under another pod network than the one that it uses now. */
export function isOfEarlierNetwork(about: AboutId, view: NodeView): boolean {
  const { network } = valueOr(view.snapshot.cni.conf, undefined) ?? {};
  const own = runtimesResults(about, view);
  return network !== undefined && own.length > 0 && own.every((file) => file.network !== network);
}

function isReportedReleased({ sandbox }: AboutId, { snapshot }: NodeView): boolean {
  const newest = runtimeReports(snapshot).findLast(
    (report) => report.kind !== "config-rejected" && report.sandboxId !== undefined && report.sandboxId === sandbox?.id,
  );
  return newest?.kind === "network-released";
}

/**
 * The runtime removes the network namespace after a successful DEL, and never before. A restart of the machine removes
 * it as well: then only containers that all ended in order show that the sandbox was stopped before.
 */
function isStoppedInOrder(about: AboutId, view: NodeView): boolean {
  const { sandbox } = about;
  if (sandbox === undefined || !isNetnsGone(about, view) || about.containers.some(endWasLost)) return false;
  if (endedInOrder(about)) return true;
  const isOfThisBoot = view.snapshot.boot.status === "read" && predatesStart(sandbox, view) !== "machine";
  return isOfThisBoot && !wasNeverCreated(sandbox);
}

const NETNS_DIRS = /^(?:\/var)?\/run\/netns\/([^/]+)$/;

/** Whether nothing is mounted any more at the path of its network namespace. */
export function isNetnsGone({ metadata }: AboutId, { snapshot: { netns } }: NodeView): boolean {
  const [, name] = NETNS_DIRS.exec(metadata?.netnsPath ?? "") ?? [];
  if (name === undefined || netns.status === "failed") return false;
  return !valueOr(netns, []).some((entry) => entry.name === name && entry.inode !== undefined);
}

/** libcni's cache for the runtime itself; its cache for multus' delegates is in multus' own directory. */
function runtimesResults({ results }: AboutId, { snapshot }: NodeView): readonly ResultFile[] {
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  return results.filter(({ path }) => multusDir === undefined || !path.startsWith(`${multusDir}/`));
}

function isDelAlwaysAnswered({ snapshot }: NodeView): boolean {
  const multus = valueOr(snapshot.cni.conf, undefined)?.multus;
  return multus !== undefined && !multusVariant(multus).failedDelBlocksRemoval;
}

/**
 * Whether the runtime has torn the network down: libcni removes the runtime's cached result only after a successful
 * DEL. Delegates' results in multus' own directory are no evidence for that.
 */
export function networkReleased(about: AboutId, view: NodeView): boolean {
  return view.snapshot.cni.results.status !== "failed" && unreleasedResults(about, view).length === 0;
}

/** ADD never completed, but the runtime still fails on an error of DEL. */
export function failsWithoutResult({ metadata }: AboutId, { snapshot: { runtime } }: NodeView): boolean {
  if (metadata?.hasCniResult !== false || metadata.hostNetwork || !runtime.name.startsWith("containerd")) return false;
  return containerdBehaviour(runtime.version)?.stop === "del-error-blocks";
}

/**
 * Whether the runtime loaded it from its 2.x sandbox store instead of creating it since its start: such a record has no
 * container record and is older than the runtime.
 */
export function wasRecovered({ record, storeRecord }: AboutId, view: NodeView): boolean {
  if (storeRecord?.createdAt === undefined || record !== undefined) return false;
  const up = view.runtimeUpSeconds;
  if (up === undefined) return false;
  return storeRecord.createdAt.getTime() < view.snapshot.observedAt.getTime() - up * 1000;
}

/** In the runtime's terms: "main exited (exit 137, Error)". */
export function containerInWords({ name, state, exit }: Container): string {
  if (exit === undefined) return `${name} ${state}`;
  return `${name} ${state} (exit ${exit.exitCode}${exit.reason ? `, ${exit.reason}` : ""})`;
}
