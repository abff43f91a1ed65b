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

  async function inParts(state: PodSandboxState, pods: readonly PodHint[]): Promise<readonly PodSandbox[]> {
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
  }

  const whole = await list();
  if (!(whole instanceof RuntimeError)) return { items: whole, coverage: "whole" };

  const found = new Map<string, PodSandbox>();
  let pods: readonly PodHint[] | undefined;
  for (const state of SANDBOX_STATES) {
    const part = await list({ state: { state } });
    if (!(part instanceof RuntimeError)) {
      collect(found, part);
      continue;
    }
    pods ??= await hint();
    if (pods.length === 0) throw unreadable(part, "the list of sandboxes, with nothing to name the pods to ask for");
    collect(found, await inParts(state, pods));
  }
  return { items: [...found.values()], coverage: pods ? "hinted" : "whole" };
}

/** All containers: in one answer, else by state, else by sandbox. */
export async function listAllContainers(
  cri: Pick<CriClient, "listContainers">,
  sandboxIds: () => Promise<readonly string[]>,
  options: CallOptions,
): Promise<Listing<Container>> {
  const list = (filter?: ContainerFilter) => unlessTooLarge(() => cri.listContainers(filter, options));

  async function bySandbox(state: ContainerState, podSandboxId: string): Promise<readonly Container[]> {
    const part = await list({ state: { state }, podSandboxId });
    if (part instanceof RuntimeError) throw unreadable(part, `the containers of sandbox ${podSandboxId}`);
    return part;
  }

  const whole = await list();
  if (!(whole instanceof RuntimeError)) return { items: whole, coverage: "whole" };

  const found = new Map<string, Container>();
  let coverage: Listing<Container>["coverage"] = "whole";
  for (const state of CONTAINER_STATES) {
    const part = await list({ state: { state } });
    if (!(part instanceof RuntimeError)) {
      collect(found, part);
      continue;
    }
    const ids = await sandboxIds();
    if (ids.length === 0) throw unreadable(part, "the list of containers, with no sandbox known to ask for");
    coverage = "hinted";
    for (const items of await mapLimited(ids, CONCURRENCY, (id) => bySandbox(state, id))) collect(found, items);
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

function collect<T extends { readonly id: string }>(found: Map<string, T>, items: readonly T[]): void {
  for (const item of items) found.set(item.id, item);
}
