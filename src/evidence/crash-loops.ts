import { valueOr } from "../host/source.ts";
import type { PodRef } from "../node/types/ids.ts";
import { ZERO_TIME } from "../node/types/runtime.ts";
import type { NodeView } from "./view.ts";

/** A container or sandbox that is restarted repeatedly. */
export interface CrashLoop {
  readonly pod: PodRef;
  /** The container's name; missing if the sandbox itself is re-created repeatedly. */
  readonly container?: string;
  /** Seconds from one start to the next. */
  readonly everySeconds: number;
  readonly lastSecondsAgo: number;
  /** Starts since boot, as far as they are still known. */
  readonly restartsSinceBoot: number;
}

/** One or two restarts happen to every pod. */
const LEAST_RESTARTS = 3;
/** Kubelet's longest back-off is five minutes: a container without a restart for twice as long has stopped looping. */
const WINDOW_SECONDS = 600;

interface Start {
  readonly attempt: number;
  readonly createdAt: bigint;
}

/**
 * Crash loops from the runtime's data: kubelet increments the attempt, and keeps the last ended container beside the
 * newest.
 */
export function crashLoops(view: NodeView): readonly CrashLoop[] {
  const containers = valueOr(view.snapshot.cri, undefined)?.containers ?? [];
  const podOf = new Map(view.sandboxes.map(({ id, pod }) => [id, pod]));
  const byContainer = Map.groupBy(containers, ({ sandboxId, name }) => `${podOf.get(sandboxId)?.uid} ${name}`);
  const found: CrashLoop[] = [];
  for (const starts of byContainer.values()) {
    const [first] = starts;
    const pod = first === undefined ? undefined : podOf.get(first.sandboxId);
    if (first === undefined || pod === undefined) continue;
    const loop = loopOf(starts, view);
    if (loop !== undefined) found.push({ pod, container: first.name, ...loop });
  }
  for (const sandboxes of view.sandboxesOfPod.values()) {
    const [first] = sandboxes;
    const starts = sandboxes.map(({ pod, createdAt }) => ({ attempt: pod.attempt, createdAt }));
    const loop = loopOf(starts, view);
    if (first !== undefined && loop !== undefined) found.push({ pod: first.pod, ...loop });
  }
  return found;
}

function loopOf(all: readonly Start[], view: NodeView): Omit<CrashLoop, "pod" | "container"> | undefined {
  const starts = all
    .filter(({ createdAt }) => createdAt !== ZERO_TIME && createdAt > 0n)
    .toSorted((one, other) => other.attempt - one.attempt);
  const [newest, before] = starts;
  if (newest === undefined || before === undefined || newest.attempt < LEAST_RESTARTS) return undefined;
  const observed = BigInt(view.snapshot.observedAt.getTime()) * 1_000_000n;
  const lastSecondsAgo = seconds(observed - newest.createdAt);
  const everySeconds = seconds(newest.createdAt - before.createdAt) / (newest.attempt - before.attempt);
  // Times in the wrong order come from a clock step and are no evidence of an interval.
  if (!(lastSecondsAgo >= 0 && lastSecondsAgo <= WINDOW_SECONDS)) return undefined;
  if (!(everySeconds > 0 && everySeconds <= WINDOW_SECONDS)) return undefined;
  const restartsSinceBoot = sinceBoot(starts, { newest, before, everySeconds }, view);
  // Several boots in a row restart everything as often, without a crash loop.
  if (restartsSinceBoot < LEAST_RESTARTS) return undefined;
  return { everySeconds, lastSecondsAgo, restartsSinceBoot };
}

/**
 * All attempts above the last one from before the boot. Kubelet removes that one after a while, and attempts count on
 * over many boots: then the count is limited by the time since boot. Back-offs at most double, so earlier ones were
 * half as long.
 */
function sinceBoot(
  starts: readonly Start[],
  { newest, before, everySeconds }: { newest: Start; before: Start; everySeconds: number },
  { snapshot }: NodeView,
): number {
  const boot = valueOr(snapshot.boot, undefined);
  if (boot === undefined) return newest.attempt;
  const bootedAt = BigInt(boot.startedAt.getTime()) * 1_000_000n;
  const earlier = starts.find(({ createdAt }) => createdAt < bootedAt);
  if (earlier !== undefined) return newest.attempt - earlier.attempt;
  const forgotten = Math.floor(seconds(before.createdAt - bootedAt) / (everySeconds / 2));
  return Math.min(newest.attempt, newest.attempt - before.attempt + forgotten);
}

function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1_000_000n) / 1000;
}
