import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { type ContainerSchema, Containers } from "../../src/runtime/gen/containerd/containers_pb.ts";
import { Leases } from "../../src/runtime/gen/containerd/leases_pb.ts";
import { Store as SandboxStore } from "../../src/runtime/gen/containerd/sandboxes_pb.ts";
import { type ProcessSchema, Status, Tasks } from "../../src/runtime/gen/containerd/tasks_pb.ts";
import { ZERO_TIME } from "../../src/snapshot/types.ts";
import { containerExtension, sandboxExtension } from "./metadata.ts";
import { notFound } from "./refusal.ts";
import { quoted } from "./registrar.ts";
import type { ContainerRecord, SandboxRecord, Store } from "./store.ts";

type RecordInit = MessageInitShape<typeof ContainerSchema>;
type TaskInit = MessageInitShape<typeof ProcessSchema>;

/** containerd's own API over the same store, so that what it tells always fits what CRI tells. */
export function addContainerdServices(router: ConnectRouter, store: Store): void {
  router.service(Containers, {
    get: (request, context) => {
      requireNamespace(context);
      for (const record of records(store)) {
        if (record.id === request.id) return { container: record };
      }
      throw notFound(`container ${quoted(request.id)} in namespace "k8s.io"`);
    },
    listStream: async function* (_request, context) {
      requireNamespace(context);
      for (const container of records(store)) yield { container };
    },
  });
  router.service(Tasks, {
    list: (_request, context) => {
      requireNamespace(context);
      return { tasks: [...tasks(store)] };
    },
  });
  router.service(Leases, {
    list: (_request, context) => {
      requireNamespace(context);
      return { leases: [...store.leases].map(([id, createdAt]) => ({ id, createdAt: timestamp(createdAt) })) };
    },
    delete: (request, context) => {
      requireNamespace(context);
      if (store.leases.delete(request.id)) return {};
      throw notFound(`lease ${quoted(request.id)}`);
    },
  });
  router.service(SandboxStore, {
    list: (_request, context) => {
      requireNamespace(context);
      return { list: [...store.sandboxes.values()].map(storedSandbox) };
    },
  });
}

function* records(store: Store): Iterable<RecordInit> {
  for (const sandbox of store.sandboxes.values()) {
    // The record of the pause container is written after CNI ADD: one that never came so far has none.
    if (sandbox.createdAt !== ZERO_TIME) yield sandboxRecord(sandbox);
  }
  for (const container of store.containers.values()) yield containerRecord(container);
}

function sandboxRecord(sandbox: SandboxRecord): RecordInit {
  return {
    id: sandbox.id,
    labels: { ...sandbox.config.labels, "io.cri-containerd.kind": "sandbox" },
    snapshotter: "overlayfs",
    snapshotKey: sandbox.id,
    createdAt: timestamp(sandbox.createdAt),
    extensions: { "io.cri-containerd.sandbox.metadata": sandboxExtension(sandbox) },
    sandbox: sandbox.id,
  };
}

function containerRecord(container: ContainerRecord): RecordInit {
  return {
    id: container.id,
    labels: { ...container.config.labels, "io.cri-containerd.kind": "container" },
    image: container.config.image?.image ?? "",
    snapshotter: "overlayfs",
    snapshotKey: container.id,
    createdAt: timestamp(container.createdAt),
    extensions: { "io.cri-containerd.container.metadata": containerExtension(container) },
    sandbox: container.sandboxId,
  };
}

function storedSandbox(sandbox: SandboxRecord) {
  return {
    sandboxId: sandbox.id,
    labels: { ...sandbox.config.labels, "io.cri-containerd.kind": "sandbox" },
    createdAt: timestamp(sandbox.createdAt),
    extensions: { metadata: sandboxExtension(sandbox) },
    sandboxer: "podsandbox",
  };
}

function* tasks(store: Store): Iterable<TaskInit> {
  for (const { id, pid } of [...store.sandboxes.values(), ...store.containers.values()]) {
    if (pid !== 0) yield { id, containerId: id, pid, status: Status.RUNNING };
  }
}

function requireNamespace(context: HandlerContext): void {
  if (context.requestHeader.get("containerd-namespace")) return;
  throw new ConnectError("namespace is required: failed precondition", Code.FailedPrecondition);
}

function timestamp(nanos: bigint): Timestamp {
  return timestampFromMs(Number(nanos / 1_000_000n));
}
