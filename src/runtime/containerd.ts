import { type CallOptions, callStream, callUnary, method } from "./call.ts";
import { RuntimeError } from "./errors.ts";
import * as containersApi from "./gen/containerd/containers.ts";
import * as leasesApi from "./gen/containerd/leases.ts";
import * as sandboxesApi from "./gen/containerd/sandboxes.ts";
import * as tasksApi from "./gen/containerd/tasks.ts";
import { openChannel } from "./grpc-channel.ts";

/** The namespace that the CRI plugin keeps its records in. */
const KUBERNETES_NAMESPACE = "k8s.io";

/** containerd's own API on the same socket: records, tasks and leases that CRI has no words for. */
export interface ContainerdClient {
  listContainers(options: CallOptions): Promise<readonly containersApi.Container[]>;
  getContainer(id: string, options: CallOptions): Promise<containersApi.Container | undefined>;
  /** Deletes a record behind CRI's back: only while CRI is off, see boot/repair. */
  deleteContainer(id: string, options: CallOptions): Promise<void>;
  deleteSandbox(id: string, options: CallOptions): Promise<void>;
  listTasks(options: CallOptions): Promise<readonly tasksApi.Process[]>;
  listLeases(options: CallOptions): Promise<readonly leasesApi.Lease[]>;
  deleteLease(id: string, options: CallOptions): Promise<void>;
  /** Empty on containerd 1.x, which has no sandbox store. */
  listSandboxes(options: CallOptions): Promise<readonly sandboxesApi.Sandbox[]>;
  close(): void;
}

const CONTAINERS = "containerd.services.containers.v1.Containers";
const TASKS = "containerd.services.tasks.v1.Tasks";
const LEASES = "containerd.services.leases.v1.Leases";
const SANDBOXES = "containerd.services.sandbox.v1.Store";

const methods = {
  containersGet: method(CONTAINERS, "Get", containersApi.GetContainerRequest, containersApi.GetContainerResponse),
  // Streamed: with its OCI spec a record is some 10 KB, and a thousand of them overflow a single message.
  containersList: method(
    CONTAINERS,
    "ListStream",
    containersApi.ListContainersRequest,
    containersApi.ListContainerMessage,
  ),
  containersDelete: method(
    CONTAINERS,
    "Delete",
    containersApi.DeleteContainerRequest,
    containersApi.DeleteContainerResponse,
  ),
  tasksList: method(TASKS, "List", tasksApi.ListTasksRequest, tasksApi.ListTasksResponse),
  leasesList: method(LEASES, "List", leasesApi.ListRequest, leasesApi.ListResponse),
  leasesDelete: method(LEASES, "Delete", leasesApi.DeleteRequest, leasesApi.DeleteResponse),
  sandboxesDelete: method(SANDBOXES, "Delete", sandboxesApi.StoreDeleteRequest, sandboxesApi.StoreDeleteResponse),
  sandboxesList: method(SANDBOXES, "List", sandboxesApi.StoreListRequest, sandboxesApi.StoreListResponse),
};

export function openContainerd(path: string): ContainerdClient {
  const channel = openChannel(path, { "containerd-namespace": KUBERNETES_NAMESPACE });
  return {
    close: () => channel.close(),
    listContainers: async (options) => {
      const found: containersApi.Container[] = [];
      for await (const { container } of callStream(channel, path, methods.containersList, {}, options)) {
        if (container !== undefined) found.push(container);
      }
      return found;
    },
    getContainer: (id, options) =>
      unless("not-found", undefined, async () => {
        const answer = await callUnary(channel, path, methods.containersGet, { id }, options);
        return answer.container;
      }),
    deleteContainer: async (id, options) => {
      await callUnary(channel, path, methods.containersDelete, { id }, options);
    },
    deleteSandbox: async (id, options) => {
      await callUnary(channel, path, methods.sandboxesDelete, { sandboxId: id }, options);
    },
    listTasks: async (options) => (await callUnary(channel, path, methods.tasksList, {}, options)).tasks,
    listLeases: async (options) => (await callUnary(channel, path, methods.leasesList, {}, options)).leases,
    deleteLease: async (id, options) => {
      await callUnary(channel, path, methods.leasesDelete, { id }, options);
    },
    listSandboxes: (options) =>
      unless("unsupported", [], async () => {
        const answer = await callUnary(channel, path, methods.sandboxesList, {}, options);
        return answer.list;
      }),
  };
}

/** One kind of failure that is an answer in itself. */
async function unless<T>(kind: RuntimeError["kind"], answer: T, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === kind) return answer;
    throw error;
  }
}
