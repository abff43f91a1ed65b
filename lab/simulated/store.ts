import { randomBytes, randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import {
  type ContainerConfig,
  ContainerEventType,
  ContainerState,
  NamespaceMode,
  type PodSandboxConfig,
} from "../../src/runtime/gen/runtime/v1/cri.ts";
import { Registrar } from "./registrar.ts";

/** One sandbox of the simulated runtime. Mutable: used only by the services in this directory. */
export interface SandboxRecord {
  readonly id: string;
  readonly name: string;
  readonly config: PodSandboxConfig;
  /** `creating`: RunPodSandbox is in flight. CRI lists it only when `complete`; containerd's store has both. */
  stage: "creating" | "complete";
  ready: boolean;
  createdAt: bigint;
  /** 0 without a task. */
  pid: number;
  readonly netnsPath: string;
  netnsOpen: boolean;
  /** Set once CNI ADD completed. From then on a failing DEL blocks StopPodSandbox. */
  address: string | undefined;
}

export interface ContainerRecord {
  readonly id: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly createdAt: bigint;
  readonly logPath: string;
  state: ContainerState;
  startedAt: bigint;
  finishedAt: bigint;
  exitCode: number;
  reason: string;
  pid: number;
}

export interface StoreEvent {
  readonly type: ContainerEventType;
  readonly id: string;
  readonly sandboxId: string;
}

/** containerd's exit state of a container that was running at the power cut. */
const LOST = { exitCode: 255, reason: "Unknown" } as const;

export class Store {
  readonly sandboxes = new Map<string, SandboxRecord>();
  readonly containers = new Map<string, ContainerRecord>();
  readonly sandboxNames = new Registrar();
  readonly containerNames = new Registrar();
  readonly leases = new Map<string, bigint>();
  readonly events = new EventEmitter<{ change: [StoreEvent] }>();
  #lastPid = 1000;

  constructor() {
    // One listener per GetContainerEvents stream; ten of them are no leak.
    this.events.setMaxListeners(0);
  }

  /** Name, store record and lease: everything that exists before RunPodSandbox has finished. */
  beginSandbox(id: string, name: string, config: PodSandboxConfig): SandboxRecord {
    const sandbox: SandboxRecord = {
      id,
      name,
      config,
      stage: "creating",
      ready: false,
      createdAt: ZERO_TIME,
      pid: 0,
      netnsPath: isHostNetwork(config) ? "" : `/var/run/netns/cni-${randomUUID()}`,
      netnsOpen: !isHostNetwork(config),
      address: undefined,
    };
    this.sandboxes.set(id, sandbox);
    this.leases.set(id, nowNanos());
    return sandbox;
  }

  completeSandbox(sandbox: SandboxRecord, createdAt: bigint): void {
    sandbox.stage = "complete";
    sandbox.ready = true;
    sandbox.createdAt = createdAt;
    sandbox.pid = this.nextPid();
    this.#announce(ContainerEventType.CONTAINER_CREATED_EVENT, sandbox.id, sandbox.id);
    this.#announce(ContainerEventType.CONTAINER_STARTED_EVENT, sandbox.id, sandbox.id);
  }

  /** In containerd's order: the name is released last. */
  dropSandbox(id: string): void {
    const sandbox = this.sandboxes.get(id);
    this.sandboxes.delete(id);
    this.leases.delete(id);
    this.sandboxNames.release(id);
    if (sandbox?.stage === "complete") this.#announce(ContainerEventType.CONTAINER_DELETED_EVENT, id, id);
  }

  haltSandbox(sandbox: SandboxRecord): void {
    if (!sandbox.ready) return;
    sandbox.ready = false;
    sandbox.pid = 0;
    this.#announce(ContainerEventType.CONTAINER_STOPPED_EVENT, sandbox.id, sandbox.id);
  }

  addContainer(container: ContainerRecord): void {
    this.containers.set(container.id, container);
    this.#announce(ContainerEventType.CONTAINER_CREATED_EVENT, container.id, container.sandboxId);
  }

  startContainer(container: ContainerRecord, startedAt: bigint): void {
    container.state = ContainerState.CONTAINER_RUNNING;
    container.startedAt = startedAt;
    container.pid = this.nextPid();
    this.#announce(ContainerEventType.CONTAINER_STARTED_EVENT, container.id, container.sandboxId);
  }

  endContainer(container: ContainerRecord, exit: { readonly exitCode: number; readonly reason: string }): void {
    if (container.state !== ContainerState.CONTAINER_RUNNING) return;
    container.state = ContainerState.CONTAINER_EXITED;
    container.finishedAt = nowNanos();
    container.exitCode = exit.exitCode;
    container.reason = exit.reason;
    container.pid = 0;
    this.#announce(ContainerEventType.CONTAINER_STOPPED_EVENT, container.id, container.sandboxId);
  }

  dropContainer(container: ContainerRecord): void {
    this.containers.delete(container.id);
    this.containerNames.release(container.id);
    this.#announce(ContainerEventType.CONTAINER_DELETED_EVENT, container.id, container.sandboxId);
  }

  *containersOf(sandboxId: string): Iterable<ContainerRecord> {
    for (const container of this.containers.values()) {
      if (container.sandboxId === sandboxId) yield container;
    }
  }

  /** The same disks after a power cut: no process, no network namespace, every record. */
  loseProcesses(): void {
    for (const container of this.containers.values()) this.endContainer(container, LOST);
    for (const sandbox of this.sandboxes.values()) {
      this.haltSandbox(sandbox);
      sandbox.netnsOpen = false;
    }
  }

  /**
   * How a restarted containerd 2.x loads its records: names are reserved again for complete sandboxes, while one that
   * was still being created becomes visible, has Go's zero time and holds no name.
   */
  recover(): void {
    this.sandboxNames.clear();
    this.containerNames.clear();
    for (const container of this.containers.values()) this.containerNames.reserve(container.name, container.id);
    for (const sandbox of this.sandboxes.values()) {
      if (sandbox.stage === "complete" && sandbox.createdAt !== ZERO_TIME) {
        this.sandboxNames.reserve(sandbox.name, sandbox.id);
      }
      sandbox.stage = "complete";
    }
  }

  nextPid(): number {
    this.#lastPid += 1;
    return this.#lastPid;
  }

  #announce(type: ContainerEventType, id: string, sandboxId: string): void {
    this.events.emit("change", { type, id, sandboxId });
  }
}

export function newId(): string {
  return randomBytes(32).toString("hex");
}

export function nowNanos(): bigint {
  return BigInt(Date.now()) * 1_000_000n;
}

export function isHostNetwork(config: PodSandboxConfig): boolean {
  return config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;
}
