import { on } from "node:events";
import * as api from "../../src/runtime/gen/runtime/v1/cri.ts";
import { createContainer, removeContainer, startContainer, stopContainer } from "./containers.ts";
import { type Codec, type Handler, type Handlers, serverStream, unary } from "./handlers.ts";
import { listContainers, listSandboxes } from "./listing.ts";
import { removeSandbox, runSandbox, stopSandbox } from "./sandboxes.ts";
import type { CallName } from "./script.ts";
import { containerStatus, sandboxStatus, statusInfo } from "./status.ts";
import type { StoreEvent } from "./store.ts";
import type { World } from "./world.ts";

/** runtime.v1 with the behaviour of containerd 2.3, without real processes. */
export function criService(world: World): Handlers {
  const { store, script } = world;
  const handlers = new Map<string, Handler>();

  function serve<Request, Response>(
    name: CallName,
    request: Codec<Request>,
    response: Codec<Response>,
    answer: (request: Request) => Response | Promise<Response>,
  ): void {
    const admitted = async (message: Request): Promise<Response> => {
      await script.admit(name);
      return answer(message);
    };
    handlers.set(pathOf(name), unary(request, response, admitted));
  }

  serve("version", api.VersionRequest, api.VersionResponse, () => ({
    version: "0.1.0",
    runtimeName: "containerd (simulated)",
    runtimeVersion: world.version,
    runtimeApiVersion: "v1",
  }));
  serve("status", api.StatusRequest, api.StatusResponse, ({ verbose }) =>
    api.StatusResponse.fromPartial({
      status: {
        conditions: [
          { type: "RuntimeReady", status: true },
          { type: "NetworkReady", status: true },
        ],
      },
      info: verbose ? statusInfo(world) : {},
    }),
  );
  serve("runPodSandbox", api.RunPodSandboxRequest, api.RunPodSandboxResponse, async ({ config }) => ({
    podSandboxId: await runSandbox(world, config),
  }));
  serve("stopPodSandbox", api.StopPodSandboxRequest, api.StopPodSandboxResponse, async ({ podSandboxId }) => {
    await stopSandbox(world, podSandboxId);
    return {};
  });
  serve("removePodSandbox", api.RemovePodSandboxRequest, api.RemovePodSandboxResponse, async ({ podSandboxId }) => {
    await removeSandbox(world, podSandboxId);
    return {};
  });
  serve("podSandboxStatus", api.PodSandboxStatusRequest, api.PodSandboxStatusResponse, (request) =>
    sandboxStatus(store, request),
  );
  serve("listPodSandbox", api.ListPodSandboxRequest, api.ListPodSandboxResponse, ({ filter }) => ({
    items: listSandboxes(store, filter, script.faults.maxMessageBytes),
  }));
  serve("createContainer", api.CreateContainerRequest, api.CreateContainerResponse, (request) => ({
    containerId: createContainer(store, request),
  }));
  serve("startContainer", api.StartContainerRequest, api.StartContainerResponse, ({ containerId }) => {
    startContainer(store, containerId);
    return {};
  });
  serve("stopContainer", api.StopContainerRequest, api.StopContainerResponse, ({ containerId, timeout }) => {
    stopContainer(store, containerId, timeout);
    return {};
  });
  serve("removeContainer", api.RemoveContainerRequest, api.RemoveContainerResponse, ({ containerId }) => {
    removeContainer(store, containerId);
    return {};
  });
  serve("listContainers", api.ListContainersRequest, api.ListContainersResponse, ({ filter }) => ({
    containers: listContainers(store, filter, script.faults.maxMessageBytes),
  }));
  serve("containerStatus", api.ContainerStatusRequest, api.ContainerStatusResponse, ({ containerId }) =>
    containerStatus(store, containerId),
  );
  handlers.set(
    pathOf("getContainerEvents"),
    serverStream(api.GetEventsRequest, api.ContainerEventResponse, async function* (_request, context) {
      await script.admit("getContainerEvents");
      const signal = AbortSignal.any([context.signal, script.power]);
      for await (const [event] of on(store.events, "change", { signal })) yield eventMessage(event);
    }),
  );
  return handlers;
}

function pathOf(name: CallName): string {
  return `/runtime.v1.RuntimeService/${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function eventMessage(event: StoreEvent): api.ContainerEventResponse {
  return api.ContainerEventResponse.fromPartial({ containerId: event.id, containerEventType: event.type });
}
