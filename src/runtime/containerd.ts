import { createClient, type Interceptor } from "@connectrpc/connect";
import { type CallOptions, guarded } from "./call.ts";
import { RuntimeError } from "./errors.ts";
import { type Container, Containers } from "./gen/containerd/containers_pb.ts";
import { type Lease, Leases } from "./gen/containerd/leases_pb.ts";
import { type Sandbox, Store } from "./gen/containerd/sandboxes_pb.ts";
import { type Process, Tasks } from "./gen/containerd/tasks_pb.ts";
import { openSocket } from "./transport.ts";

/** The namespace that the CRI plugin keeps its records in. */
const KUBERNETES_NAMESPACE = "k8s.io";

/** containerd's own API on the same socket: records, tasks and leases that CRI has no words for. */
export interface ContainerdClient {
  listContainers(options: CallOptions): Promise<readonly Container[]>;
  getContainer(id: string, options: CallOptions): Promise<Container | undefined>;
  listTasks(options: CallOptions): Promise<readonly Process[]>;
  listLeases(options: CallOptions): Promise<readonly Lease[]>;
  deleteLease(id: string, options: CallOptions): Promise<void>;
  /** Empty on containerd 1.x, which has no sandbox store. */
  listSandboxes(options: CallOptions): Promise<readonly Sandbox[]>;
  close(): void;
}

const inKubernetesNamespace: Interceptor = (next) => (request) => {
  request.header.set("containerd-namespace", KUBERNETES_NAMESPACE);
  return next(request);
};

export function openContainerd(path: string): ContainerdClient {
  const socket = openSocket(path, [inKubernetesNamespace]);
  const containers = createClient(Containers, socket.transport);
  const tasks = createClient(Tasks, socket.transport);
  const leases = createClient(Leases, socket.transport);
  const sandboxes = createClient(Store, socket.transport);
  return {
    close: () => socket.close(),
    // Streamed: with its OCI spec a record is some 10 KB, and a thousand of them overflow a single message.
    listContainers: (options) =>
      guarded("Containers.ListStream", path, options, async (bounds) => {
        const found: Container[] = [];
        for await (const message of containers.listStream({}, bounds)) {
          if (message.container) found.push(message.container);
        }
        return found;
      }),
    getContainer: async (id, options) => {
      try {
        return await guarded("Containers.Get", path, options, async (bounds) => {
          const answer = await containers.get({ id }, bounds);
          return answer.container;
        });
      } catch (error) {
        if (error instanceof RuntimeError && error.kind === "not-found") return undefined;
        throw error;
      }
    },
    listTasks: (options) =>
      guarded("Tasks.List", path, options, async (bounds) => (await tasks.list({}, bounds)).tasks),
    listLeases: (options) =>
      guarded("Leases.List", path, options, async (bounds) => (await leases.list({}, bounds)).leases),
    deleteLease: (id, options) =>
      guarded("Leases.Delete", path, options, async (bounds) => {
        await leases.delete({ id, sync: false }, bounds);
      }),
    listSandboxes: async (options) => {
      try {
        return await guarded("Sandboxes.List", path, options, async (bounds) => {
          const answer = await sandboxes.list({}, bounds);
          return answer.list;
        });
      } catch (error) {
        if (error instanceof RuntimeError && error.kind === "unsupported") return [];
        throw error;
      }
    },
  };
}
