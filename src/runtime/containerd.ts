import { unless } from "./errors.ts";
import { type Container, ContainersDefinition } from "./gen/containerd/containers.ts";
import { EventsDefinition } from "./gen/containerd/events.ts";
import { type Lease, LeasesDefinition } from "./gen/containerd/leases.ts";
import { type Sandbox, StoreDefinition } from "./gen/containerd/sandboxes.ts";
import { type Process, TasksDefinition } from "./gen/containerd/tasks.ts";
import { type CallOptions, done, ENDLESS, type GrpcChannel, methodsOf, openChannel, SMALL_LIST } from "./grpc.ts";

/** The namespace of the CRI plugin's records. */
const KUBERNETES_NAMESPACE = "k8s.io";
const IN_KUBERNETES = { "containerd-namespace": KUBERNETES_NAMESPACE };

const events = methodsOf(EventsDefinition, IN_KUBERNETES);
const containers = methodsOf(ContainersDefinition, IN_KUBERNETES);
const tasks = methodsOf(TasksDefinition, IN_KUBERNETES);
const leases = methodsOf(LeasesDefinition, IN_KUBERNETES);
const sandboxes = methodsOf(StoreDefinition, IN_KUBERNETES);

/** containerd's own API on the same socket: records, tasks and leases that CRI does not expose. */
export type ContainerdClient = ReturnType<typeof openContainerd>;

/** Uses its own connection, or shares the one of CRI. */
export function openContainerd(path: string, channel: GrpcChannel = openChannel(path)) {
  /** Streamed: a record is some 10 KB with its OCI spec, and a thousand of them exceed the limit of one message. */
  async function listed(filters: string[], options: CallOptions): Promise<readonly Container[]> {
    const found: Container[] = [];
    for await (const { container } of channel.stream(containers.listStream, { filters }, options)) {
      if (container !== undefined) found.push(container);
    }
    return found;
  }
  return {
    close: () => channel.close(),
    listContainers: (options: CallOptions) => listed([], options),
    /** Returns those of the ids that have a record. */
    findContainers: (ids: readonly string[], options: CallOptions) => {
      const filters = ids.map((id) => `id==${id}`);
      return listed(filters, options);
    },
    /** Deletes a record without CRI: only while the CRI plugin is disabled, see boot/repair. */
    deleteContainer: (id: string, options: CallOptions) => done(channel.unary(containers.delete, { id }, options)),
    deleteSandbox: (sandboxId: string, options: CallOptions) =>
      done(channel.unary(sandboxes.delete, { sandboxId }, options)),
    /** containerd waits two seconds for each shim that does not answer, one after the other. */
    listTasks: async (options: CallOptions): Promise<readonly Process[]> =>
      (await channel.unary(tasks.list, {}, { ...options, limits: SMALL_LIST })).tasks,
    /** Undefined if the container has no task. */
    findTask: (containerId: string, options: CallOptions) =>
      unless("not-found", undefined, async () => (await channel.unary(tasks.get, { containerId }, options)).process),
    listLeases: async (options: CallOptions): Promise<readonly Lease[]> =>
      (await channel.unary(leases.list, {}, { ...options, limits: SMALL_LIST })).leases,
    deleteLease: (id: string, options: CallOptions) => done(channel.unary(leases.delete, { id }, options)),
    /** Empty on containerd 1.x, which has no sandbox store. */
    listSandboxes: (options: CallOptions): Promise<readonly Sandbox[]> =>
      unless("unsupported", [], async () => (await channel.unary(sandboxes.list, {}, options)).list),
    /** Events of the namespace's containers and sandboxes from now on that match the filters. */
    events: (filters: readonly string[], options: CallOptions) => {
      const inNamespace = filters.map((filter) => `namespace==${KUBERNETES_NAMESPACE},${filter}`);
      return channel.stream(events.subscribe, { filters: inNamespace }, { ...options, limits: ENDLESS });
    },
  };
}
