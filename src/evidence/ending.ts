import { valueOr } from "../host/source.ts";
import type { ResultFile } from "../snapshot/types/cni.ts";
import { type Container, type Sandbox, ZERO_TIME } from "../snapshot/types/runtime.ts";
import { containerdBehaviour } from "./versions/containerd.ts";
import { multusVariant } from "./versions/multus.ts";
import type { AboutId, NodeView } from "./view.ts";

/** containerd gives these to a container that it finds without a task after a restart. */
const CONTAINERD_LOST = { exitCode: 255, reason: "Unknown" } as const;
/** CRI-O gives this to a container whose exit it never learned, with "Error" as the reason; no process exits with it. */
const CRIO_LOST_EXIT_CODE = -1;

/** The container did not end on its own: its end was never seen by the runtime. */
export function endWasLost({ state, exit }: Pick<Container, "state" | "exit">): boolean {
  if (state === "unknown" || exit?.exitCode === CRIO_LOST_EXIT_CODE) return true;
  return exit?.exitCode === CONTAINERD_LOST.exitCode && exit.reason === CONTAINERD_LOST.reason;
}

/**
 * All containers ran to an end that the runtime saw: a finished pod, whose logs people still read. An exit that could
 * not be read is neither in order nor lost: nothing is concluded from it.
 */
export function endedInOrder({ containers }: AboutId): boolean {
  return (
    containers.length > 0 && containers.every((c) => c.exit !== undefined && c.state === "exited" && !endWasLost(c))
  );
}

/** How some of them ended is unknown, and none is known to be lost. */
export function mayHaveEndedInOrder({ containers }: AboutId): boolean {
  const isUnread = containers.some(({ state, exit }) => state === "exited" && exit === undefined);
  return isUnread && !containers.some(endWasLost);
}

/** Never completely created: Go's zero time, which crictl prints as "292 years ago" or the like. */
export function wasNeverCreated(sandbox: Sandbox): boolean {
  return sandbox.createdAt === ZERO_TIME;
}

/** A newer sandbox of the same pod runs: the old one holds the containers behind `kubectl logs --previous`. */
export function runningSuccessor(sandbox: Sandbox, view: NodeView): Sandbox | undefined {
  const siblings = view.sandboxesOfPod.get(sandbox.pod.uid) ?? [];
  return siblings.find((other) => other.state === "ready" && other.pod.attempt > sandbox.pod.attempt);
}

/**
 * Whether the sandbox was made before the runtime, or the machine, last started - and so died with it.
 * Wall-clock times on both sides come from the same clock; a clock step between them makes this undecided.
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
 * Whether CNI still holds state for it. An orderly stop ends with DEL, which takes cache and address away: what is
 * still there was never stopped, or is being stopped at this moment.
 */
export function networkStillHeld(about: AboutId, view: NodeView): string | undefined {
  const [own] = runtimesResults(about, view);
  // The shim of thick multus answers DEL with success even when its delegates fail: what they left is a leak.
  const isReleasedForRuntime = own === undefined && isDelAlwaysAnswered(view);
  const [lease] = isReleasedForRuntime ? [] : about.leases;
  if (lease !== undefined) return `its address ${lease.address} on ${lease.network} is still taken`;
  const cached = about.multus?.isMarker === true ? undefined : about.multus;
  const file = own ?? (isReleasedForRuntime ? undefined : (cached ?? about.flannel));
  return file === undefined ? undefined : `its network was never released: ${file.path} is still there`;
}

/** What libcni cached for the runtime itself; what it cached for multus' delegates is below multus' own directory. */
function runtimesResults({ results }: AboutId, { snapshot }: NodeView): readonly ResultFile[] {
  const multusDir = valueOr(snapshot.cni.multus, undefined)?.dir;
  return results.filter(({ path }) => multusDir === undefined || !path.startsWith(`${multusDir}/`));
}

function isDelAlwaysAnswered({ snapshot }: NodeView): boolean {
  const multus = valueOr(snapshot.cni.conf, undefined)?.multus;
  return multus !== undefined && !multusVariant(multus).failedDelBlocksRemoval;
}

const NETNS_DIRS = /^(?:\/var)?\/run\/netns\/([^/]+)$/;

/**
 * Whether the network namespace went before the network was taken down. A stop does it the other way round, so the
 * machine was restarted in between. Needs no clock.
 */
export function lostItsNetns(about: AboutId, view: NodeView): boolean {
  const { netns } = view.snapshot;
  const [, name] = NETNS_DIRS.exec(about.metadata?.netnsPath ?? "") ?? [];
  if (name === undefined || netns.status === "failed" || networkStillHeld(about, view) === undefined) return false;
  return !valueOr(netns, []).some((entry) => entry.name === name && entry.inode !== undefined);
}

/**
 * Whether the runtime has taken its network down: libcni drops the result it cached for the runtime only after a DEL
 * that succeeded. What delegates cached below multus' own directory is no evidence for that.
 */
export function networkReleased(about: AboutId, view: NodeView): boolean {
  return view.snapshot.cni.results.status !== "failed" && runtimesResults(about, view).length === 0;
}

/**
 * Whether removing it calls DEL and fails with it. Old releases of containerd insist on DEL even where ADD never
 * completed, and then no result was ever cached that could be missing now.
 */
export function isDelDue(about: AboutId, view: NodeView): boolean {
  if (about.metadata?.hostNetwork === true) return false;
  return !networkReleased(about, view) || failsWithoutResult(about, view);
}

/** ADD never completed, and the runtime fails on an error of DEL all the same. */
export function failsWithoutResult({ metadata }: AboutId, { snapshot: { runtime } }: NodeView): boolean {
  if (metadata?.hasCniResult !== false || metadata.hostNetwork || !runtime.name.startsWith("containerd")) return false;
  return containerdBehaviour(runtime.version)?.stop === "del-error-blocks";
}

/**
 * Stopped in an orderly way: it had a network, nothing of that is left, and no container was lost. That the runtime was
 * restarted later does not make it a victim of that.
 */
export function wasTakenDown(about: AboutId, view: NodeView): boolean {
  const hadNetwork = about.metadata?.hasCniResult === true;
  return hadNetwork && networkStillHeld(about, view) === undefined && !about.containers.some(endWasLost);
}

/**
 * Whether the runtime read it back from its 2.x sandbox store rather than made it in this life: such a record has no
 * container record beside it and is older than the runtime.
 */
export function wasRecovered({ record, storeRecord }: AboutId, view: NodeView): boolean {
  if (storeRecord?.createdAt === undefined || record !== undefined) return false;
  const up = view.runtimeUpSeconds;
  if (up === undefined) return false;
  return storeRecord.createdAt.getTime() < view.snapshot.observedAt.getTime() - up * 1000;
}

/** As the runtime reports it: "main exited (exit 137, Error)". */
export function containerInWords({ name, state, exit }: Container): string {
  if (exit === undefined) return `${name} ${state}`;
  return `${name} ${state} (exit ${exit.exitCode}${exit.reason ? `, ${exit.reason}` : ""})`;
}
