import { RuntimeError } from "./errors.ts";
import * as api from "./gen/runtime/v1/cri.ts";
import { type CallOptions, ENDLESS, type GrpcChannel, method, openChannel } from "./grpc.ts";

export type PodSandboxConfig = api.DeepPartial<api.PodSandboxConfig>;
export type ContainerConfig = api.DeepPartial<api.ContainerConfig>;
export type PodSandboxFilter = api.DeepPartial<api.PodSandboxFilter>;
export type ContainerFilter = api.DeepPartial<api.ContainerFilter>;

/**
 * The methods of the Container Runtime Interface that unghost uses. Every method throws RuntimeError and nothing else.
 */
export interface CriClient {
  readonly path: string;
  version(options: CallOptions): Promise<api.VersionResponse>;
  /** Verbose: the info map contains the effective CNI directories of the runtime. */
  status(options: CallOptions): Promise<api.StatusResponse>;
  listPodSandbox(filter: PodSandboxFilter | undefined, options: CallOptions): Promise<readonly api.PodSandbox[]>;
  /** Ids and states of all sandboxes: the same list with less decoding. */
  listSandboxStates(options: CallOptions): Promise<readonly api.SandboxState[]>;
  podSandboxStatus(id: string, options: CallOptions): Promise<api.PodSandboxStatusResponse>;
  /** Only the state, cheaper than the verbose status; undefined if the runtime does not have the sandbox. */
  podSandboxState(id: string, options: CallOptions): Promise<api.PodSandboxState | undefined>;
  listContainers(filter: ContainerFilter | undefined, options: CallOptions): Promise<readonly api.Container[]>;
  containerStatus(id: string, options: CallOptions): Promise<api.ContainerStatusResponse>;
  /** Releases network and address, keeps the record, the logs and the name. */
  stopPodSandbox(id: string, options: CallOptions): Promise<void>;
  /** Releases the name. Succeeds for an unknown id: verify the effect. */
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
  containerEvents(options: CallOptions): AsyncIterable<api.ContainerEventResponse>;
  close(): void;
}

const SERVICE = "runtime.v1.RuntimeService";

const methods = {
  version: method(SERVICE, "Version", api.VersionRequest, api.VersionResponse),
  status: method(SERVICE, "Status", api.StatusRequest, api.StatusResponse),
  listPodSandbox: method(SERVICE, "ListPodSandbox", api.ListPodSandboxRequest, api.ListPodSandboxResponse),
  listSandboxStates: method(SERVICE, "ListPodSandbox", api.ListPodSandboxRequest, api.SandboxStates),
  podSandboxStatus: method(SERVICE, "PodSandboxStatus", api.PodSandboxStatusRequest, api.PodSandboxStatusResponse),
  listContainers: method(SERVICE, "ListContainers", api.ListContainersRequest, api.ListContainersResponse),
  containerStatus: method(SERVICE, "ContainerStatus", api.ContainerStatusRequest, api.ContainerStatusResponse),
  stopPodSandbox: method(SERVICE, "StopPodSandbox", api.StopPodSandboxRequest, api.StopPodSandboxResponse),
  removePodSandbox: method(SERVICE, "RemovePodSandbox", api.RemovePodSandboxRequest, api.RemovePodSandboxResponse),
  runPodSandbox: method(SERVICE, "RunPodSandbox", api.RunPodSandboxRequest, api.RunPodSandboxResponse),
  createContainer: method(SERVICE, "CreateContainer", api.CreateContainerRequest, api.CreateContainerResponse),
  startContainer: method(SERVICE, "StartContainer", api.StartContainerRequest, api.StartContainerResponse),
  stopContainer: method(SERVICE, "StopContainer", api.StopContainerRequest, api.StopContainerResponse),
  removeContainer: method(SERVICE, "RemoveContainer", api.RemoveContainerRequest, api.RemoveContainerResponse),
  getContainerEvents: method(SERVICE, "GetContainerEvents", api.GetEventsRequest, api.ContainerEventResponse),
};

/** Uses its own connection, or shares the one of containerd's API. */
export function openCri(path: string, channel: GrpcChannel = openChannel(path)): CriClient {
  return {
    path,
    close: () => channel.close(),
    version: (options) => channel.unary(methods.version, {}, options),
    status: (options) => channel.unary(methods.status, { verbose: true }, options),
    listPodSandbox: async (filter, options) =>
      (await channel.unary(methods.listPodSandbox, filter ? { filter } : {}, options)).items,
    listSandboxStates: async (options) => (await channel.unary(methods.listSandboxStates, {}, options)).items,
    podSandboxStatus: (id, options) =>
      channel.unary(methods.podSandboxStatus, { podSandboxId: id, verbose: true }, options),
    podSandboxState: async (id, options) => {
      try {
        const { status } = await channel.unary(methods.podSandboxStatus, { podSandboxId: id, verbose: false }, options);
        return status?.state;
      } catch (error) {
        if (error instanceof RuntimeError && error.kind === "not-found") return undefined;
        throw error;
      }
    },
    listContainers: async (filter, options) =>
      (await channel.unary(methods.listContainers, filter ? { filter } : {}, options)).containers,
    containerStatus: (id, options) => channel.unary(methods.containerStatus, { containerId: id }, options),
    stopPodSandbox: async (id, options) => {
      await channel.unary(methods.stopPodSandbox, { podSandboxId: id }, options);
    },
    removePodSandbox: async (id, options) => {
      await channel.unary(methods.removePodSandbox, { podSandboxId: id }, options);
    },
    runPodSandbox: async (config, options) =>
      (await channel.unary(methods.runPodSandbox, { config }, options)).podSandboxId,
    createContainer: async (podSandboxId, config, sandboxConfig, options) =>
      (await channel.unary(methods.createContainer, { podSandboxId, config, sandboxConfig }, options)).containerId,
    startContainer: async (id, options) => {
      await channel.unary(methods.startContainer, { containerId: id }, options);
    },
    stopContainer: async (id, graceSeconds, options) => {
      await channel.unary(methods.stopContainer, { containerId: id, timeout: BigInt(graceSeconds) }, options);
    },
    removeContainer: async (id, options) => {
      await channel.unary(methods.removeContainer, { containerId: id }, options);
    },
    containerEvents: (options) => channel.stream(methods.getContainerEvents, {}, { ...options, limits: ENDLESS }),
  };
}

/** Whether a CRI server answers at the socket. */
export async function answersCri(path: string, call: CallOptions): Promise<boolean> {
  const cri = openCri(path);
  try {
    await cri.version(call);
    return true;
  } catch {
    return false;
  } finally {
    cri.close();
  }
}
