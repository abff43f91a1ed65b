import type * as v from "valibot";
import { type PodSchema, sandboxUid } from "./objects.ts";

/** How a pod stands in the cluster, and what it has to do with storage. What is ordinary is left out. */
export interface PodState {
  /** Of its object, where that differs from what its sandboxes carry: a static pod's mirror. */
  readonly objectUid?: string;
  /** The kind of controller that brings it back when it is deleted. */
  readonly controller?: string;
  /** Why its containers do not run, such as CrashLoopBackOff. */
  readonly waiting?: readonly string[];
  readonly restarts?: number;
  /** Containers that ended with an error; missing where none did, or the pod has finished. */
  readonly crash?: Crash;
  readonly csi?: CsiMounts;
}

/**
 * Kubelet shows the reason CrashLoopBackOff for a part of the time only: since 1.36 a container mostly stands at
 * `terminated` between two starts.
 */
export interface Crash {
  /** One of them does not run now. */
  readonly down: boolean;
  /** When the last one ended; missing where kubelet does not report it. */
  readonly endedAt?: Date;
}

/** A pod that mounts the directory of a CSI driver's socket. */
export interface CsiMounts {
  /** Directories of the node, such as /var/lib/kubelet/plugins/driver.longhorn.io. */
  readonly dirs: readonly string[];
  /** It registers the driver with kubelet: then it is the driver's node plugin. */
  readonly registers: boolean;
}

type Pod = v.InferOutput<typeof PodSchema>;

export function podState(pod: Pod): PodState {
  const { metadata, status } = pod;
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true)?.kind;
  const statuses = status?.containerStatuses ?? [];
  const waiting = statuses.flatMap(({ state }) => state?.waiting?.reason ?? []);
  const restarts = statuses.reduce((sum, { restartCount }) => sum + (restartCount ?? 0), 0);
  const crash = crashOf(pod);
  const csi = csiMounts(pod);
  return {
    ...(sandboxUid(pod) === metadata.uid ? {} : { objectUid: metadata.uid }),
    ...(controller === undefined ? {} : { controller }),
    ...(waiting.length === 0 ? {} : { waiting }),
    ...(restarts === 0 ? {} : { restarts }),
    ...(crash === undefined ? {} : { crash }),
    ...(csi === undefined ? {} : { csi }),
  };
}

/** A container of it has crashed and does not run now. */
export function isDown({ crash, waiting }: Pick<PodState, "crash" | "waiting">): boolean {
  return crash?.down === true || waiting?.includes("CrashLoopBackOff") === true;
}

function crashOf({ status }: Pod): Crash | undefined {
  if (status?.phase === "Succeeded" || status?.phase === "Failed") return undefined;
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const crashed = statuses.flatMap(({ state, lastState }) => {
    const ends = [state?.terminated, lastState?.terminated].filter((end) => end && end.exitCode !== 0);
    if (ends.length === 0) return [];
    // An init container that has succeeded in the end does not hold its pod up any more.
    if (state?.terminated?.exitCode === 0) return [];
    return [{ down: !state?.running, times: ends.flatMap((end) => end?.finishedAt ?? []) }];
  });
  if (crashed.length === 0) return undefined;
  const times = crashed.flatMap((one) => one.times.map((time) => new Date(time).getTime())).filter(Number.isFinite);
  return {
    down: crashed.some(({ down }) => down),
    ...(times.length === 0 ? {} : { endedAt: new Date(Math.max(...times)) }),
  };
}

/** Wherever kubelet's root is: `plugins/<driver>` and not kubelet's own `plugins/kubernetes.io`. */
const SOCKET_DIR = /\/plugins\/(?!kubernetes\.io(?:\/|$))[^/]+\/?$/;
const REGISTRY = /\/plugins_registry\/?$/;

function csiMounts({ spec }: Pod): CsiMounts | undefined {
  const paths = (spec?.volumes ?? []).flatMap(({ hostPath }) => hostPath?.path ?? []);
  const dirs = paths.filter((path) => SOCKET_DIR.test(path)).map((path) => path.replace(/\/$/, ""));
  if (dirs.length === 0) return undefined;
  const registrar = (spec?.containers ?? []).some(({ name }) => name.includes("registrar"));
  return { dirs, registers: registrar || paths.some((path) => REGISTRY.test(path)) };
}
