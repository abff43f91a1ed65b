import { join } from "node:path";
import { ContainerState, type CreateContainerRequest } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { notFound, refusal } from "./refusal.ts";
import { quoted } from "./registrar.ts";
import { type ContainerRecord, newId, nowNanos, type Store } from "./store.ts";

export function createContainer(store: Store, request: CreateContainerRequest): string {
  const sandbox = store.sandboxes.get(request.podSandboxId);
  if (sandbox?.stage !== "complete") {
    throw notFound(`failed to find sandbox id ${quoted(request.podSandboxId)}`);
  }
  const { config, sandboxConfig } = request;
  if (!config?.metadata) throw refusal("container config must include metadata");
  const pod = sandboxConfig?.metadata;
  if (!pod) throw refusal("pod sandbox config must include metadata");
  const id = newId();
  const name = [config.metadata.name, pod.name, pod.namespace, pod.uid, config.metadata.attempt].join("_");
  const taken = store.containerNames.reserve(name, id);
  if (taken !== undefined) {
    const hint = "check if another CreateContainer request is in progress";
    throw refusal(`failed to reserve container name ${quoted(name)}; ${hint}: ${taken}`);
  }
  const logged = sandboxConfig.logDirectory !== "" && config.logPath !== "";
  store.addContainer({
    id,
    name,
    sandboxId: sandbox.id,
    config,
    createdAt: nowNanos(),
    logPath: logged ? join(sandboxConfig.logDirectory, config.logPath) : "",
    state: ContainerState.CONTAINER_CREATED,
    startedAt: 0n,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    pid: 0,
  });
  return id;
}

export function startContainer(store: Store, id: string): void {
  const container = found(store, id);
  if (container.state !== ContainerState.CONTAINER_CREATED) {
    throw refusal(
      `failed to set starting state for container ${quoted(id)}: container is in ${stateName(container.state)} state`,
    );
  }
  if (store.sandboxes.get(container.sandboxId)?.ready !== true) {
    throw refusal(`sandbox container ${quoted(container.sandboxId)} is not running`);
  }
  store.startContainer(container, nowNanos());
}

/** A container that is gone or never ran counts as stopped. */
export function stopContainer(store: Store, id: string, graceSeconds: bigint): void {
  const container = store.containers.get(id);
  if (!container) return;
  const exit = graceSeconds > 0n ? { exitCode: 0, reason: "Completed" } : { exitCode: 137, reason: "Error" };
  store.endContainer(container, exit);
}

export function removeContainer(store: Store, id: string): void {
  const container = store.containers.get(id);
  if (!container) return;
  store.endContainer(container, { exitCode: 137, reason: "Error" });
  store.dropContainer(container);
}

export function found(store: Store, id: string): ContainerRecord {
  const container = store.containers.get(id);
  if (container) return container;
  throw notFound(`an error occurred when try to find container ${quoted(id)}`);
}

function stateName(state: ContainerState): string {
  return Object.entries(ContainerState).find(([, value]) => value === state)?.[0] ?? "unknown";
}
