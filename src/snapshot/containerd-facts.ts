import { parseJson, property } from "../host/json.ts";
import type { CallOptions } from "../runtime/call.ts";
import type { ContainerdClient } from "../runtime/containerd.ts";
import type { Container } from "../runtime/gen/containerd/containers.ts";
import type { Sandbox } from "../runtime/gen/containerd/sandboxes.ts";
import { Status } from "../runtime/gen/containerd/tasks.ts";
import type { ContainerdFacts, ContainerRecord, SandboxMetadata, SandboxRecord, Task } from "./types/runtime.ts";

/** Reads containerd's own records of the `k8s.io` namespace. Throws RuntimeError. */
export async function readContainerd(client: ContainerdClient, options: CallOptions): Promise<ContainerdFacts> {
  const [containers, tasks, leases, sandboxes] = await Promise.all([
    client.listContainers(options),
    readTasks(client, options),
    client.listLeases(options),
    client.listSandboxes(options),
  ]);
  return {
    records: containers.map(toRecord),
    tasks,
    leases: leases.map((lease) => ({ id: lease.id, createdAt: lease.createdAt })),
    sandboxes: sandboxes.map(toSandboxRecord),
  };
}

/** Only tasks: few are running while many may be recorded. */
export async function readTasks(client: ContainerdClient, options: CallOptions): Promise<readonly Task[]> {
  return (await client.listTasks(options)).map((task) => ({
    containerId: task.id || task.containerId,
    pid: task.pid,
    status: TASK_STATES[task.status] ?? "unknown",
  }));
}

const TASK_STATES: Readonly<Record<Status, Task["status"]>> = {
  [Status.UNKNOWN]: "unknown",
  [Status.CREATED]: "created",
  [Status.RUNNING]: "running",
  [Status.STOPPED]: "stopped",
  [Status.PAUSED]: "paused",
  [Status.PAUSING]: "pausing",
};

const KIND_LABEL = "io.cri-containerd.kind";

function toRecord(container: Container): ContainerRecord {
  const label = container.labels[KIND_LABEL];
  const kind = label === "sandbox" || label === "container" ? label : "other";
  const metadata = kind === "sandbox" ? metadataIn(container.extensions) : undefined;
  return {
    id: container.id,
    kind,
    createdAt: container.createdAt,
    labels: container.labels,
    ...(metadata === undefined ? {} : { sandbox: metadata }),
  };
}

function toSandboxRecord(sandbox: Sandbox): SandboxRecord {
  const metadata = metadataIn(sandbox.extensions);
  return {
    id: sandbox.sandboxId,
    createdAt: sandbox.createdAt,
    labels: sandbox.labels,
    ...(metadata === undefined ? {} : { sandbox: metadata }),
  };
}

/** Key of the CRI extension: with a container record (all versions), and in the 2.x sandbox store. */
const EXTENSION_KEYS = ["io.cri-containerd.sandbox.metadata", "metadata"];

function metadataIn(extensions: Readonly<Record<string, { readonly value: Uint8Array }>>): SandboxMetadata | undefined {
  for (const key of EXTENSION_KEYS) {
    const extension = extensions[key];
    if (extension !== undefined) return parseSandboxMetadata(extension.value);
  }
  return undefined;
}

/** The extension is JSON: `{"Version":"v1","Metadata":{"ID":…,"Name":…,"NetNSPath":…,"CNIResult":…,"Config":…}}`. */
export function parseSandboxMetadata(bytes: Uint8Array): SandboxMetadata | undefined {
  const metadata = property(parseJson(new TextDecoder().decode(bytes)), "Metadata");
  const name = property(metadata, "Name");
  if (typeof name !== "string") return undefined;
  const netnsPath = property(metadata, "NetNSPath");
  const options = property(
    property(property(property(metadata, "Config"), "linux"), "security_context"),
    "namespace_options",
  );
  const result = property(metadata, "CNIResult");
  return {
    name,
    netnsPath: typeof netnsPath === "string" ? netnsPath : "",
    hostNetwork: property(options, "network") === HOST_NETWORK,
    hasCniResult: result !== undefined && result !== null,
  };
}

/** NamespaceMode.NODE as the CRI configuration is stored. */
const HOST_NETWORK = 2;
