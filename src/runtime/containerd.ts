import { RuntimeError } from "./errors.ts";
import * as containersApi from "./gen/containerd/containers.ts";
import * as eventsApi from "./gen/containerd/events.ts";
import * as leasesApi from "./gen/containerd/leases.ts";
import * as sandboxesApi from "./gen/containerd/sandboxes.ts";
import * as tasksApi from "./gen/containerd/tasks.ts";
import { type CallOptions, ENDLESS, type GrpcChannel, method, openChannel } from "./grpc.ts";

/** The namespace of the CRI plugin's records. */
const KUBERNETES_NAMESPACE = "k8s.io";
const IN_KUBERNETES = { "containerd-namespace": KUBERNETES_NAMESPACE };

/** containerd's own API on the same socket: records, tasks and leases that CRI does not expose. */
export interface ContainerdClient {
  listContainers(options: CallOptions): Promise<readonly containersApi.Container[]>;
  /** Returns those of the ids that have a record. */
  findContainers(ids: readonly string[], options: CallOptions): Promise<readonly containersApi.Container[]>;
  /** Deletes a record without CRI: only while the CRI plugin is disabled, see boot/repair. */
  deleteContainer(id: string, options: CallOptions): Promise<void>;
  deleteSandbox(id: string, options: CallOptions): Promise<void>;
  /** containerd waits two seconds for each shim that does not answer, one after the other. */
  listTasks(options: CallOptions): Promise<readonly tasksApi.Process[]>;
  /** Undefined if the container has no task. */
  findTask(containerId: string, options: CallOptions): Promise<tasksApi.Process | undefined>;
  listLeases(options: CallOptions): Promise<readonly leasesApi.Lease[]>;
  deleteLease(id: string, options: CallOptions): Promise<void>;
  /** Empty on containerd 1.x, which has no sandbox store. */
  listSandboxes(options: CallOptions): Promise<readonly sandboxesApi.Sandbox[]>;
  /** Events of the namespace's containers and sandboxes from now on that match the filters. */
  events(filters: readonly string[], options: CallOptions): AsyncIterable<eventsApi.Envelope>;
  close(): void;
}

const EVENTS = "containerd.services.events.v1.Events";
const CONTAINERS = "containerd.services.containers.v1.Containers";
const TASKS = "containerd.services.tasks.v1.Tasks";
const LEASES = "containerd.services.leases.v1.Leases";
const SANDBOXES = "containerd.services.sandbox.v1.Store";

const inKubernetes: typeof method = (service, name, request, response) =>
  method(service, name, request, response, IN_KUBERNETES);

const methods = {
  eventsSubscribe: inKubernetes(EVENTS, "Subscribe", eventsApi.SubscribeRequest, eventsApi.Envelope),
  // Streamed: a record is some 10 KB with its OCI spec, and a thousand of them exceed the limit of one message.
  containersList: inKubernetes(
    CONTAINERS,
    "ListStream",
    containersApi.ListContainersRequest,
    containersApi.ListContainerMessage,
  ),
  containersDelete: inKubernetes(
    CONTAINERS,
    "Delete",
    containersApi.DeleteContainerRequest,
    containersApi.DeleteContainerResponse,
  ),
  tasksList: inKubernetes(TASKS, "List", tasksApi.ListTasksRequest, tasksApi.ListTasksResponse),
  tasksGet: inKubernetes(TASKS, "Get", tasksApi.GetRequest, tasksApi.GetResponse),
  leasesList: inKubernetes(LEASES, "List", leasesApi.ListRequest, leasesApi.ListResponse),
  leasesDelete: inKubernetes(LEASES, "Delete", leasesApi.DeleteRequest, leasesApi.DeleteResponse),
  sandboxesDelete: inKubernetes(SANDBOXES, "Delete", sandboxesApi.StoreDeleteRequest, sandboxesApi.StoreDeleteResponse),
  sandboxesList: inKubernetes(SANDBOXES, "List", sandboxesApi.StoreListRequest, sandboxesApi.StoreListResponse),
};

/** Uses its own connection, or shares the one of CRI. */
export function openContainerd(path: string, channel: GrpcChannel = openChannel(path)): ContainerdClient {
  async function listed(filters: readonly string[], options: CallOptions): Promise<readonly containersApi.Container[]> {
    const found: containersApi.Container[] = [];
    for await (const { container } of channel.stream(methods.containersList, { filters }, options)) {
      if (container !== undefined) found.push(container);
    }
    return found;
  }
  return {
    close: () => channel.close(),
    listContainers: (options) => listed([], options),
    findContainers: (ids, options) =>
      listed(
        ids.map((id) => `id==${id}`),
        options,
      ),
    deleteContainer: async (id, options) => {
      await channel.unary(methods.containersDelete, { id }, options);
    },
    deleteSandbox: async (id, options) => {
      await channel.unary(methods.sandboxesDelete, { sandboxId: id }, options);
    },
    listTasks: async (options) => (await channel.unary(methods.tasksList, {}, options)).tasks,
    findTask: (containerId, options) =>
      unless("not-found", undefined, async () => {
        const answer = await channel.unary(methods.tasksGet, { containerId }, options);
        return answer.process;
      }),
    listLeases: async (options) => (await channel.unary(methods.leasesList, {}, options)).leases,
    deleteLease: async (id, options) => {
      await channel.unary(methods.leasesDelete, { id }, options);
    },
    listSandboxes: (options) =>
      unless("unsupported", [], async () => {
        const answer = await channel.unary(methods.sandboxesList, {}, options);
        return answer.list;
      }),
    events: (filters, options) =>
      channel.stream(
        methods.eventsSubscribe,
        { filters: filters.map((filter) => `namespace==${KUBERNETES_NAMESPACE},${filter}`) },
        { ...options, limits: ENDLESS },
      ),
  };
}

/** Turns one kind of error into a value. */
async function unless<T>(kind: RuntimeError["kind"], answer: T, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === kind) return answer;
    throw error;
  }
}
