import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { type CallOptions, guarded, guardedStream } from "./call.ts";
import {
  type Container,
  type ContainerConfigSchema,
  type ContainerEventResponse,
  type ContainerFilterSchema,
  type ContainerStatusResponse,
  type PodSandbox,
  type PodSandboxConfigSchema,
  type PodSandboxFilterSchema,
  type PodSandboxStatusResponse,
  RuntimeService,
  type StatusResponse,
  type VersionResponse,
} from "./gen/runtime/v1/cri_pb.ts";
import { openSocket } from "./transport.ts";

export type PodSandboxConfig = MessageInitShape<typeof PodSandboxConfigSchema>;
export type ContainerConfig = MessageInitShape<typeof ContainerConfigSchema>;
export type PodSandboxFilter = MessageInitShape<typeof PodSandboxFilterSchema>;
export type ContainerFilter = MessageInitShape<typeof ContainerFilterSchema>;

/** The Container Runtime Interface, as far as unghost speaks it. Every method throws RuntimeError and nothing else. */
export interface CriClient {
  readonly path: string;
  version(options: CallOptions): Promise<VersionResponse>;
  /** Verbose: the info map names the CNI directories that the runtime really uses. */
  status(options: CallOptions): Promise<StatusResponse>;
  listPodSandbox(filter: PodSandboxFilter | undefined, options: CallOptions): Promise<readonly PodSandbox[]>;
  podSandboxStatus(id: string, options: CallOptions): Promise<PodSandboxStatusResponse>;
  listContainers(filter: ContainerFilter | undefined, options: CallOptions): Promise<readonly Container[]>;
  containerStatus(id: string, options: CallOptions): Promise<ContainerStatusResponse>;
  /** Frees network and address, keeps the record, the logs and the name. */
  stopPodSandbox(id: string, options: CallOptions): Promise<void>;
  /** Releases the name. Answers without error for an id that the runtime does not know: verify by effect. */
  removePodSandbox(id: string, options: CallOptions): Promise<void>;
  runPodSandbox(config: PodSandboxConfig, options: CallOptions): Promise<string>;
  createContainer(
    sandboxId: string,
    config: ContainerConfig,
    sandboxConfig: PodSandboxConfig,
    options: CallOptions,
  ): Promise<string>;
  startContainer(id: string, options: CallOptions): Promise<void>;
  stopContainer(id: string, graceSeconds: number, options: CallOptions): Promise<void>;
  removeContainer(id: string, options: CallOptions): Promise<void>;
  /** Ends with `unsupported` on containerd 1.6, which has no such stream. */
  containerEvents(options: CallOptions): AsyncIterable<ContainerEventResponse>;
  close(): void;
}

export function openCri(path: string): CriClient {
  const socket = openSocket(path);
  return criOver(createClient(RuntimeService, socket.transport), path, () => socket.close());
}

function criOver(client: Client<typeof RuntimeService>, path: string, close: () => void): CriClient {
  return {
    path,
    close,
    version: (options) => guarded("Version", path, options, (bounds) => client.version({}, bounds)),
    status: (options) => guarded("Status", path, options, (bounds) => client.status({ verbose: true }, bounds)),
    listPodSandbox: (filter, options) =>
      guarded("ListPodSandbox", path, options, async (bounds) => {
        const answer = await client.listPodSandbox(filter ? { filter } : {}, bounds);
        return answer.items;
      }),
    podSandboxStatus: (id, options) =>
      guarded("PodSandboxStatus", path, options, (bounds) =>
        client.podSandboxStatus({ podSandboxId: id, verbose: true }, bounds),
      ),
    listContainers: (filter, options) =>
      guarded("ListContainers", path, options, async (bounds) => {
        const answer = await client.listContainers(filter ? { filter } : {}, bounds);
        return answer.containers;
      }),
    containerStatus: (id, options) =>
      guarded("ContainerStatus", path, options, (bounds) => client.containerStatus({ containerId: id }, bounds)),
    stopPodSandbox: (id, options) =>
      guarded("StopPodSandbox", path, options, async (bounds) => {
        await client.stopPodSandbox({ podSandboxId: id }, bounds);
      }),
    removePodSandbox: (id, options) =>
      guarded("RemovePodSandbox", path, options, async (bounds) => {
        await client.removePodSandbox({ podSandboxId: id }, bounds);
      }),
    runPodSandbox: (config, options) =>
      guarded("RunPodSandbox", path, options, async (bounds) => {
        const answer = await client.runPodSandbox({ config }, bounds);
        return answer.podSandboxId;
      }),
    createContainer: (sandboxId, config, sandboxConfig, options) =>
      guarded("CreateContainer", path, options, async (bounds) => {
        const answer = await client.createContainer({ podSandboxId: sandboxId, config, sandboxConfig }, bounds);
        return answer.containerId;
      }),
    startContainer: (id, options) =>
      guarded("StartContainer", path, options, async (bounds) => {
        await client.startContainer({ containerId: id }, bounds);
      }),
    stopContainer: (id, graceSeconds, options) =>
      guarded("StopContainer", path, options, async (bounds) => {
        await client.stopContainer({ containerId: id, timeout: BigInt(graceSeconds) }, bounds);
      }),
    removeContainer: (id, options) =>
      guarded("RemoveContainer", path, options, async (bounds) => {
        await client.removeContainer({ containerId: id }, bounds);
      }),
    containerEvents: (options) =>
      guardedStream("GetContainerEvents", path, options, (bounds) => client.getContainerEvents({}, bounds)),
  };
}
