import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import { GrpcError } from "../../src/runtime/errors.ts";
import * as containersApi from "../../src/runtime/gen/containerd/containers.ts";
import * as leasesApi from "../../src/runtime/gen/containerd/leases.ts";
import * as sandboxesApi from "../../src/runtime/gen/containerd/sandboxes.ts";
import * as tasksApi from "../../src/runtime/gen/containerd/tasks.ts";
import { type CallContext, type Codec, type Handler, type Handlers, serverStream, unary } from "./handlers.ts";
import { containerExtension, sandboxExtension } from "./metadata.ts";
import { notFound } from "./refusal.ts";
import { quoted } from "./registrar.ts";
import type { ContainerRecord, SandboxRecord, Store } from "./store.ts";

const SERVICES = "/containerd.services";

/** containerd's own API with the same store, so that it always agrees with CRI. */
export function containerdServices(store: Store): Handlers {
  const handlers = new Map<string, Handler>();

  function serve<Request, Response>(
    method: string,
    request: Codec<Request>,
    response: Codec<Response>,
    answer: (request: Request) => Response,
  ): void {
    const inNamespace = (message: Request, context: CallContext): Response => {
      requireNamespace(context);
      return answer(message);
    };
    handlers.set(`${SERVICES}.${method}`, unary(request, response, inNamespace));
  }

  handlers.set(
    `${SERVICES}.containers.v1.Containers/ListStream`,
    serverStream(
      containersApi.ListContainersRequest,
      containersApi.ListContainerMessage,
      async function* ({ filters }, context) {
        requireNamespace(context);
        for (const container of records(store)) {
          if (filters.length === 0 || filters.includes(`id==${container.id}`)) yield { container };
        }
      },
    ),
  );
  serve("tasks.v1.Tasks/List", tasksApi.ListTasksRequest, tasksApi.ListTasksResponse, () => ({
    tasks: [...tasks(store)],
  }));
  serve("tasks.v1.Tasks/Get", tasksApi.GetRequest, tasksApi.GetResponse, ({ containerId }) => {
    for (const process of tasks(store)) if (process.id === containerId) return { process };
    throw notFound(`task ${containerId}`);
  });
  serve("leases.v1.Leases/List", leasesApi.ListRequest, leasesApi.ListResponse, () =>
    leasesApi.ListResponse.fromPartial({
      leases: [...store.leases].map(([id, createdAt]) => ({ id, createdAt: timestamp(createdAt) })),
    }),
  );
  serve("leases.v1.Leases/Delete", leasesApi.DeleteRequest, leasesApi.DeleteResponse, ({ id }) => {
    if (store.leases.delete(id)) return {};
    throw notFound(`lease ${quoted(id)}`);
  });
  serve("sandbox.v1.Store/List", sandboxesApi.StoreListRequest, sandboxesApi.StoreListResponse, () => ({
    list: [...store.sandboxes.values()].map(storedSandbox),
  }));
  return handlers;
}

function* records(store: Store): Iterable<containersApi.Container> {
  for (const sandbox of store.sandboxes.values()) {
    // The record of the pause container is written after CNI ADD: an incomplete sandbox has none.
    if (sandbox.createdAt !== ZERO_TIME) yield sandboxRecord(sandbox);
  }
  for (const container of store.containers.values()) yield containerRecord(container);
}

function sandboxRecord(sandbox: SandboxRecord): containersApi.Container {
  return containersApi.Container.fromPartial({
    id: sandbox.id,
    labels: { ...sandbox.config.labels, "io.cri-containerd.kind": "sandbox" },
    snapshotter: "overlayfs",
    snapshotKey: sandbox.id,
    createdAt: timestamp(sandbox.createdAt),
    extensions: { "io.cri-containerd.sandbox.metadata": sandboxExtension(sandbox) },
    sandbox: sandbox.id,
  });
}

function containerRecord(container: ContainerRecord): containersApi.Container {
  return containersApi.Container.fromPartial({
    id: container.id,
    labels: { ...container.config.labels, "io.cri-containerd.kind": "container" },
    image: container.config.image?.image ?? "",
    snapshotter: "overlayfs",
    snapshotKey: container.id,
    createdAt: timestamp(container.createdAt),
    extensions: { "io.cri-containerd.container.metadata": containerExtension(container) },
    sandbox: container.sandboxId,
  });
}

function storedSandbox(sandbox: SandboxRecord): sandboxesApi.Sandbox {
  return sandboxesApi.Sandbox.fromPartial({
    sandboxId: sandbox.id,
    labels: { ...sandbox.config.labels, "io.cri-containerd.kind": "sandbox" },
    createdAt: timestamp(sandbox.createdAt),
    extensions: { metadata: sandboxExtension(sandbox) },
    sandboxer: "podsandbox",
  });
}

function* tasks(store: Store): Iterable<tasksApi.Process> {
  for (const { id, pid } of [...store.sandboxes.values(), ...store.containers.values()]) {
    if (pid === 0) continue;
    yield tasksApi.Process.fromPartial({ id, containerId: id, pid, status: tasksApi.Status.RUNNING });
  }
}

const FAILED_PRECONDITION = 9;

function requireNamespace({ headers }: CallContext): void {
  if (headers["containerd-namespace"]) return;
  throw new GrpcError(FAILED_PRECONDITION, "namespace is required: failed precondition");
}

function timestamp(nanos: bigint): Date {
  return new Date(Number(nanos / 1_000_000n));
}
