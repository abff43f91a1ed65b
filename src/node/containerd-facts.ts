import { mapLimited } from "../host/concurrency.ts";
import type { Oddity } from "../host/source.ts";
import { parseJson, property, stringIn } from "../host/text.ts";
import type { ContainerdClient } from "../runtime/containerd.ts";
import { RuntimeError } from "../runtime/errors.ts";
import type { Container } from "../runtime/gen/containerd/containers.ts";
import type { Sandbox } from "../runtime/gen/containerd/sandboxes.ts";
import { type Process, Status } from "../runtime/gen/containerd/tasks.ts";
import type { CallOptions } from "../runtime/grpc.ts";
import type { ContainerdFacts, ContainerRecord, SandboxMetadata, SandboxRecord, Task } from "./types/runtime.ts";

/** Reads containerd's own records of the `k8s.io` namespace. Throws RuntimeError. */
export async function readContainerd(client: ContainerdClient, options: CallOptions): Promise<ContainerdFacts> {
  const listing = client.listContainers(options);
  const [containers, tasks, leases, sandboxes] = await Promise.all([
    listing,
    readTasks(client, options, listing),
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

/** Less than containerd waits for one shim. */
const LIST_MS = 1500;
/** Twice what containerd waits for one shim, and the limit for all of them. */
const TASK_MS = 4000;
const ALL_TASKS_MS = 8000;
const TASK_CONCURRENCY = 64;

/**
 * Only tasks: few are running while many may be recorded.
 *
 * containerd asks the shims one after the other and waits two seconds for each. A shim that hangs must not hide the
 * others, so if the list is late, every task is requested with a call of its own. The list is not awaited to its end:
 * 2.3 leaves out the tasks whose shims did not answer, and when the call's deadline passes, all that remain. So the call
 * is aborted before its deadline.
 */
export async function readTasks(
  client: ContainerdClient,
  options: CallOptions,
  records?: Promise<readonly Container[]>,
): Promise<readonly Task[]> {
  const late = AbortSignal.timeout(Math.min(LIST_MS, Math.ceil(options.timeoutMs / 2)));
  const signal = options.signal === undefined ? late : AbortSignal.any([options.signal, late]);
  try {
    return (await client.listTasks({ ...options, signal })).map(toTask);
  } catch (error) {
    if (!(error instanceof RuntimeError && error.kind === "deadline")) throw error;
  }
  const containers = await (records ?? client.listContainers(options));
  const call = { timeoutMs: TASK_MS, signal: AbortSignal.timeout(ALL_TASKS_MS) };
  const found = await mapLimited(containers, TASK_CONCURRENCY, ({ id }) => readTask(client, id, call));
  return found.filter((task) => task !== undefined);
}

/** A hung shim is an error since 2.3 (deadline exceeded), and a task of unknown state before. */
async function readTask(client: ContainerdClient, containerId: string, call: CallOptions): Promise<Task | undefined> {
  const unanswered = { containerId, pid: 0, status: "unanswered" } satisfies Task;
  try {
    const found = await client.findTask(containerId, call);
    if (found === undefined) return undefined;
    return found.status === Status.UNKNOWN ? unanswered : toTask(found);
  } catch (error) {
    if (!(error instanceof RuntimeError && (error.kind === "deadline" || error.kind === "refused"))) throw error;
    return unanswered;
  }
}

function toTask(task: Process): Task {
  return { containerId: task.id || task.containerId, pid: task.pid, status: TASK_STATES[task.status] ?? "unknown" };
}

/** For the report: one shim serves all tasks of a pod. */
export function unansweredShims({ records, tasks }: ContainerdFacts): readonly Oddity[] {
  const ids = new Set(tasks.filter(({ status }) => status === "unanswered").map(({ containerId }) => containerId));
  const pods = records.filter(({ id }) => ids.has(id)).map(({ id, labels }) => podIn(labels) ?? id);
  return [...new Set(pods)].map((pod) => ({
    path: `shim of ${pod}`,
    reason: "it did not answer containerd, so it is not known whether its containers run",
  }));
}

function podIn(labels: Readonly<Record<string, string>>): string | undefined {
  const name = labels["io.kubernetes.pod.name"];
  return name === undefined ? undefined : `${labels["io.kubernetes.pod.namespace"]}/${name}`;
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
  const sandbox = kind === "sandbox" ? metadataIn(container.extensions) : undefined;
  return { id: container.id, kind, createdAt: container.createdAt, labels: container.labels, sandbox };
}

function toSandboxRecord({ sandboxId: id, createdAt, labels, extensions }: Sandbox): SandboxRecord {
  return { id, createdAt, labels, sandbox: metadataIn(extensions) };
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
  const name = stringIn(metadata, "Name");
  if (name === undefined) return undefined;
  const options = property(
    property(property(property(metadata, "Config"), "linux"), "security_context"),
    "namespace_options",
  );
  const result = property(metadata, "CNIResult");
  return {
    name,
    netnsPath: stringIn(metadata, "NetNSPath") ?? "",
    hostNetwork: property(options, "network") === HOST_NETWORK,
    hasCniResult: result !== undefined && result !== null,
  };
}

/** NamespaceMode.NODE as the CRI configuration is stored. */
const HOST_NETWORK = 2;
