import { endWasLost } from "../../evidence/ending.ts";
import type { CriClient } from "../../runtime/cri.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { type Container, ContainerState } from "../../runtime/gen/runtime/v1/cri.ts";
import type { Waits } from "../execution/waits.ts";

export interface CrashTools {
  readonly cri: Pick<CriClient, "listContainers" | "containerStatus">;
  readonly waits: Pick<Waits, "lookMs">;
}

/**
 * Whether a container of the pod ended with an error and has not been started again, as the runtime says right now. The
 * API says what kubelet last reported: after a power cut that is what was true before it. Undefined where the runtime has
 * no container of the pod.
 */
export async function hasCrashed(podUid: string, { cri, waits }: CrashTools): Promise<boolean | undefined> {
  const call = { timeoutMs: waits.lookMs };
  const labelSelector = { "io.kubernetes.pod.uid": podUid };
  const containers = await cri.listContainers({ labelSelector }, call);
  if (containers.length === 0) return undefined;
  for (const { id, state } of newestOfEachName(containers)) {
    if (state !== ContainerState.CONTAINER_EXITED) continue;
    const end = await unlessGone(cri.containerStatus(id, call));
    // A container that was lost with the node has not crashed: kubelet starts it without a back-off.
    if (end?.status && end.status.exitCode !== 0 && !endWasLost({ state: "exited", exit: end.status })) return true;
  }
  return false;
}

/** A pod's containers of one name follow each other, in sandboxes that follow each other. */
function newestOfEachName(containers: readonly Container[]): readonly Container[] {
  const newest = new Map<string, Container>();
  for (const container of containers) {
    const name = container.metadata?.name ?? "";
    const known = newest.get(name);
    if (known === undefined || known.createdAt < container.createdAt) newest.set(name, container);
  }
  return [...newest.values()];
}

async function unlessGone<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "not-found") return undefined;
    throw error;
  }
}
