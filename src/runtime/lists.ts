import { mapLimited } from "../host/concurrency.ts";
import type { ContainerFilter, CriClient, PodSandboxFilter } from "./cri.ts";
import { RuntimeError } from "./errors.ts";
import { type Container, ContainerState, type PodSandbox, PodSandboxState } from "./gen/runtime/v1/cri.ts";
import type { CallOptions } from "./grpc.ts";

/** A pod that may have sandboxes here. CRI can filter by label, but cannot list the values of a label. */
export interface PodHint {
  readonly namespace: string;
  readonly uid: string;
}

export interface Listing<T> {
  readonly items: readonly T[];
  /**
   * - `whole`: complete.
   * - `hinted`: the list was too large even by state and was assembled from the pods in the hint; others are missing.
   */
  readonly coverage: "whole" | "hinted";
}

/** Concurrent requests: enough to hide the round trip, few enough not to load the runtime. */
const CONCURRENCY = 8;

const NAMESPACE_LABEL = "io.kubernetes.pod.namespace";
const UID_LABEL = "io.kubernetes.pod.uid";

/**
 * The states are requested one after the other, in the order of an object's life cycle: an object that changes its
 * state meanwhile is returned twice, and never missed.
 */
const SANDBOX_STATES = [PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY] as const;
const CONTAINER_STATES = [
  ContainerState.CONTAINER_CREATED,
  ContainerState.CONTAINER_RUNNING,
  ContainerState.CONTAINER_UNKNOWN,
  ContainerState.CONTAINER_EXITED,
] as const;

/**
 * All sandboxes, in one answer if possible, else by state, then by namespace, then by pod. The hint is read only if it
 * is needed. `timeoutMs` applies to each call; use the signal to limit the total.
 */
export async function listAllSandboxes(
  cri: Pick<CriClient, "listPodSandbox">,
  hint: () => Promise<readonly PodHint[]>,
  options: CallOptions,
): Promise<Listing<PodSandbox>> {
  const list = (filter?: PodSandboxFilter) => unlessTooLarge(() => cri.listPodSandbox(filter, options));
  let pods: readonly PodHint[] | undefined;

  return await listByState(list, SANDBOX_STATES, async (state, overflow) => {
    pods ??= await hint();
    if (pods.length === 0)
      throw unreadable(overflow, "the list of sandboxes, with nothing to name the pods to ask for");
    const namespaces = [...new Set(pods.map((pod) => pod.namespace))];
    const tooLarge = new Set<string>();
    const byNamespace = await mapLimited(namespaces, CONCURRENCY, async (namespace) => {
      const part = await list({ state: { state }, labelSelector: { [NAMESPACE_LABEL]: namespace } });
      if (!(part instanceof RuntimeError)) return part;
      tooLarge.add(namespace);
      return [];
    });
    const remaining = pods.filter((pod) => tooLarge.has(pod.namespace));
    const byPod = await mapLimited(remaining, CONCURRENCY, async ({ namespace, uid }) => {
      const part = await list({ state: { state }, labelSelector: { [NAMESPACE_LABEL]: namespace, [UID_LABEL]: uid } });
      if (part instanceof RuntimeError) throw unreadable(part, `the sandboxes of pod ${uid} in ${namespace}`);
      return part;
    });
    return [...byNamespace, ...byPod].flat();
  });
}

/** All containers: in one answer, else by state, else by sandbox. */
export async function listAllContainers(
  cri: Pick<CriClient, "listContainers">,
  sandboxIds: () => Promise<readonly string[]>,
  options: CallOptions,
): Promise<Listing<Container>> {
  const list = (filter?: ContainerFilter) => unlessTooLarge(() => cri.listContainers(filter, options));

  return await listByState(list, CONTAINER_STATES, async (state, overflow) => {
    const ids = await sandboxIds();
    if (ids.length === 0) throw unreadable(overflow, "the list of containers, with no sandbox known to ask for");
    const bySandbox = await mapLimited(ids, CONCURRENCY, async (podSandboxId) => {
      const part = await list({ state: { state }, podSandboxId });
      if (part instanceof RuntimeError) throw unreadable(part, `the containers of sandbox ${podSandboxId}`);
      return part;
    });
    return bySandbox.flat();
  });
}

/** In one answer if possible, else by state, and a state that is still too large in parts. */
async function listByState<State, Item extends { readonly id: string }>(
  list: (filter?: { state: { state: State } }) => Promise<readonly Item[] | RuntimeError>,
  states: readonly State[],
  inParts: (state: State, overflow: RuntimeError) => Promise<readonly Item[]>,
): Promise<Listing<Item>> {
  const whole = await list();
  if (!(whole instanceof RuntimeError)) return { items: whole, coverage: "whole" };

  const found = new Map<string, Item>();
  let coverage: Listing<Item>["coverage"] = "whole";
  for (const state of states) {
    const part = await list({ state: { state } });
    const isTooLarge = part instanceof RuntimeError;
    if (isTooLarge) coverage = "hinted";
    for (const item of isTooLarge ? await inParts(state, part) : part) found.set(item.id, item);
  }
  return { items: [...found.values()], coverage };
}

/** Returns an overflow as a value, because the caller can split the list. */
async function unlessTooLarge<T>(call: () => Promise<readonly T[]>): Promise<readonly T[] | RuntimeError> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === "overflow") return error;
    throw error;
  }
}

/** Keeps the runtime's text; the last attempt is added to the advice. */
function unreadable(overflow: RuntimeError, what: string): RuntimeError {
  const next = `Too large even in parts: ${what}. Raise max_send_message_size in the runtime's gRPC settings and restart it.`;
  return new RuntimeError("overflow", overflow.call, overflow.text, next, overflow);
}
