import type * as v from "valibot";
import type { PodSchema } from "./objects.ts";

/**
 * What a pod may do with its volumes by its status.
 * - `waiting`: none of its containers was ever started. Kubelet starts none before all volumes are mounted.
 * - `finished`: its phase is final and no container runs any more.
 * - `active`: everything else, including an empty status.
 */
export type PodStage = "waiting" | "active" | "finished";

export function podStage({ status }: v.InferOutput<typeof PodSchema>): PodStage {
  const statuses = [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ];
  const isRunning = statuses.some(({ state }) => state?.running);
  const phase = status?.phase;
  if (phase === "Succeeded" || phase === "Failed") return isRunning ? "active" : "finished";
  const wasStarted = statuses.some(
    ({ state, lastState, restartCount }) => state?.terminated || lastState?.terminated || (restartCount ?? 0) > 0,
  );
  return phase === "Pending" && !isRunning && !wasStarted ? "waiting" : "active";
}
