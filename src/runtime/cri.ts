import { unless } from "./errors.ts";
import * as api from "./gen/runtime/v1/cri.ts";
import {
  type CallOptions,
  done,
  ENDLESS,
  type GrpcChannel,
  methodsOf,
  type OnObject,
  openChannel,
  TextReader,
} from "./grpc.ts";

export type PodSandboxConfig = api.DeepPartial<api.PodSandboxConfig>;
export type ContainerConfig = api.DeepPartial<api.ContainerConfig>;
export type PodSandboxFilter = api.DeepPartial<api.PodSandboxFilter>;
export type ContainerFilter = api.DeepPartial<api.ContainerFilter>;

const methods = methodsOf(api.RuntimeServiceDefinition);

const listSandboxStates = {
  ...methods.listPodSandbox,
  decode: (bytes: Uint8Array, onObject?: OnObject) => api.SandboxStates.decode(new TextReader(bytes, onObject)).items,
};

/**
 * The methods of the Container Runtime Interface that unghost uses. Every method throws RuntimeError and nothing else.
 */
export type CriClient = ReturnType<typeof openCri>;

/** Uses its own connection, or shares the one of containerd's API. */
export function openCri(path: string, channel: GrpcChannel = openChannel(path)) {
  return {
    path,
    close: () => channel.close(),
    version: (options: CallOptions) => channel.unary(methods.version, {}, options),
    /** Verbose: the info map contains the effective CNI directories of the runtime. */
    status: (options: CallOptions) => channel.unary(methods.status, { verbose: true }, options),
    listPodSandbox: async (
      filter: PodSandboxFilter | undefined,
      options: CallOptions,
    ): Promise<readonly api.PodSandbox[]> => (await channel.unary(methods.listPodSandbox, { filter }, options)).items,
    /** Ids and states of all sandboxes: the same list with less decoding. */
    listSandboxStates: (options: CallOptions): Promise<readonly api.SandboxState[]> =>
      channel.unary(listSandboxStates, {}, options),
    podSandboxStatus: (id: string, options: CallOptions) =>
      channel.unary(methods.podSandboxStatus, { podSandboxId: id, verbose: true }, options),
    /** Only the state, cheaper than the verbose status; undefined if the runtime does not have the sandbox. */
    podSandboxState: (id: string, options: CallOptions) =>
      unless("not-found", undefined, async () => {
        const { status } = await channel.unary(methods.podSandboxStatus, { podSandboxId: id, verbose: false }, options);
        return status?.state;
      }),
    listContainers: async (
      filter: ContainerFilter | undefined,
      options: CallOptions,
    ): Promise<readonly api.Container[]> =>
      (await channel.unary(methods.listContainers, { filter }, options)).containers,
    containerStatus: (id: string, options: CallOptions) =>
      channel.unary(methods.containerStatus, { containerId: id }, options),
    /** Releases network and address, keeps the record, the logs and the name. */
    stopPodSandbox: (id: string, options: CallOptions) =>
      done(channel.unary(methods.stopPodSandbox, { podSandboxId: id }, options)),
    /** Releases the name. Succeeds for an unknown id: verify the effect. */
    removePodSandbox: (id: string, options: CallOptions) =>
      done(channel.unary(methods.removePodSandbox, { podSandboxId: id }, options)),
    runPodSandbox: async (config: PodSandboxConfig, options: CallOptions) =>
      (await channel.unary(methods.runPodSandbox, { config }, options)).podSandboxId,
    createContainer: async (
      podSandboxId: string,
      config: ContainerConfig,
      sandboxConfig: PodSandboxConfig,
      options: CallOptions,
    ) => (await channel.unary(methods.createContainer, { podSandboxId, config, sandboxConfig }, options)).containerId,
    startContainer: (id: string, options: CallOptions) =>
      done(channel.unary(methods.startContainer, { containerId: id }, options)),
    stopContainer: (id: string, graceSeconds: number, options: CallOptions) =>
      done(channel.unary(methods.stopContainer, { containerId: id, timeout: BigInt(graceSeconds) }, options)),
    removeContainer: (id: string, options: CallOptions) =>
      done(channel.unary(methods.removeContainer, { containerId: id }, options)),
    /** Ends with `unsupported` on containerd 1.6, which has no such stream. */
    containerEvents: (options: CallOptions) =>
      channel.stream(methods.getContainerEvents, {}, { ...options, limits: ENDLESS }),
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
