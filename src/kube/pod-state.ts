import type * as v from "valibot";
import type { PodSchema } from "./objects.ts";

/** How a pod stands in the cluster, and what it has to do with storage. */
export interface PodState {
  /** Of its object: a static pod's mirror has another than its sandboxes carry. */
  readonly objectUid: string;
  /** The kind of controller that brings it back when it is deleted; missing for a bare pod. */
  readonly controller?: string;
  /** Why its containers do not run, such as CrashLoopBackOff. */
  readonly waiting: readonly string[];
  readonly restarts: number;
  readonly containers: readonly string[];
  /** Paths of the node that it mounts. */
  readonly hostPaths: readonly string[];
}

export function podState({ metadata, spec, status }: v.InferOutput<typeof PodSchema>): PodState {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true)?.kind;
  const containers = status?.containerStatuses ?? [];
  return {
    objectUid: metadata.uid,
    ...(controller === undefined ? {} : { controller }),
    waiting: containers.flatMap(({ state }) => state?.waiting?.reason ?? []),
    restarts: containers.reduce((sum, { restartCount }) => sum + (restartCount ?? 0), 0),
    containers: (spec?.containers ?? []).map(({ name }) => name),
    hostPaths: (spec?.volumes ?? []).flatMap(({ hostPath }) => hostPath?.path ?? []),
  };
}
