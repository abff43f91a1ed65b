import { GrpcError, GrpcStatus } from "../../src/runtime/errors.ts";
import {
  Container,
  type ContainerFilter,
  PodSandbox,
  type PodSandboxFilter,
  PodSandboxState,
} from "../../src/runtime/gen/runtime/v1/cri.ts";
import type { ContainerRecord, SandboxRecord, Store } from "./store.ts";

interface Listed<T> {
  readonly message: T;
  readonly bytes: number;
}

/** Entries are encoded once per state and cached: a list of thousands is then as cheap as in the real runtime. */
const listedSandboxes = new WeakMap<SandboxRecord, Listed<PodSandbox>>();
const listedContainers = new WeakMap<ContainerRecord, Listed<Container>>();

export function listSandboxes(store: Store, filter: PodSandboxFilter | undefined, maxBytes: number): PodSandbox[] {
  const found: Listed<PodSandbox>[] = [];
  for (const sandbox of store.sandboxes.values()) {
    if (sandbox.stage === "creating") continue;
    if (filter?.id && !sandbox.id.startsWith(filter.id)) continue;
    if (filter?.state && filter.state.state !== stateOf(sandbox)) continue;
    if (!carries(sandbox.config.labels, filter?.labelSelector)) continue;
    found.push(listedSandbox(sandbox));
  }
  return fitting(found, maxBytes);
}

export function listContainers(store: Store, filter: ContainerFilter | undefined, maxBytes: number): Container[] {
  const found: Listed<Container>[] = [];
  for (const container of store.containers.values()) {
    if (filter?.id && !container.id.startsWith(filter.id)) continue;
    if (filter?.podSandboxId && !container.sandboxId.startsWith(filter.podSandboxId)) continue;
    if (filter?.state && filter.state.state !== container.state) continue;
    if (!carries(container.config.labels, filter?.labelSelector)) continue;
    found.push(listedContainer(container));
  }
  return fitting(found, maxBytes);
}

export function stateOf(sandbox: SandboxRecord): PodSandboxState {
  return sandbox.ready ? PodSandboxState.SANDBOX_READY : PodSandboxState.SANDBOX_NOTREADY;
}

function listedSandbox(sandbox: SandboxRecord): Listed<PodSandbox> {
  const known = listedSandboxes.get(sandbox);
  if (known?.message.state === stateOf(sandbox)) return known;
  const { metadata, labels, annotations } = sandbox.config;
  const message = PodSandbox.fromPartial({
    id: sandbox.id,
    ...(metadata && { metadata }),
    state: stateOf(sandbox),
    createdAt: sandbox.createdAt,
    labels,
    annotations,
  });
  const listed = { message, bytes: sizeInList(PodSandbox.encode(message).finish()) };
  listedSandboxes.set(sandbox, listed);
  return listed;
}

function listedContainer(container: ContainerRecord): Listed<Container> {
  const known = listedContainers.get(container);
  if (known?.message.state === container.state) return known;
  const { metadata, image, labels, annotations } = container.config;
  const message = Container.fromPartial({
    id: container.id,
    podSandboxId: container.sandboxId,
    ...(metadata && { metadata }),
    ...(image && { image, imageRef: image.image }),
    state: container.state,
    createdAt: container.createdAt,
    labels,
    annotations,
  });
  const listed = { message, bytes: sizeInList(Container.encode(message).finish()) };
  listedContainers.set(container, listed);
  return listed;
}

/** The bytes of one entry of a repeated field: tag, length, content. */
function sizeInList({ length: content }: Uint8Array): number {
  let lengthBytes = 1;
  for (let rest = content; rest > 127; rest >>= 7) lengthBytes++;
  return 1 + lengthBytes + content;
}

function fitting<T>(listed: readonly Listed<T>[], maxBytes: number): T[] {
  const bytes = listed.reduce((sum, entry) => sum + entry.bytes, 0);
  if (bytes > maxBytes) {
    const text = `grpc: trying to send message larger than max (${bytes} vs. ${maxBytes})`;
    throw new GrpcError(GrpcStatus.resourceExhausted, text);
  }
  return listed.map((entry) => entry.message);
}

function carries(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}
