import { on } from "node:events";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ContainerEventResponse, RuntimeService } from "../../src/runtime/gen/runtime/v1/cri_pb.ts";
import { createContainer, removeContainer, startContainer, stopContainer } from "./containers.ts";
import { listContainers, listSandboxes } from "./listing.ts";
import { removeSandbox, runSandbox, stopSandbox } from "./sandboxes.ts";
import type { CallName } from "./script.ts";
import { containerStatus, sandboxStatus, statusInfo } from "./status.ts";
import type { StoreEvent } from "./store.ts";
import type { World } from "./world.ts";

/** runtime.v1 as containerd 2.3 behaves, without a single real process. */
export function criService(world: World): ServiceImpl<typeof RuntimeService> {
  const { store, script } = world;

  function admitted<Request, Response>(name: CallName, answer: (request: Request) => Response | Promise<Response>) {
    return async (request: Request): Promise<Response> => {
      await script.admit(name);
      return answer(request);
    };
  }

  return {
    version: admitted("version", () => ({
      version: "0.1.0",
      runtimeName: "containerd (simulated)",
      runtimeVersion: world.version,
      runtimeApiVersion: "v1",
    })),
    status: admitted("status", (request) => ({
      status: {
        conditions: [
          { type: "RuntimeReady", status: true },
          { type: "NetworkReady", status: true },
        ],
      },
      info: request.verbose ? statusInfo(world) : {},
    })),
    runPodSandbox: admitted("runPodSandbox", async (request) => ({
      podSandboxId: await runSandbox(world, request.config),
    })),
    stopPodSandbox: admitted("stopPodSandbox", async (request) => {
      await stopSandbox(world, request.podSandboxId);
      return {};
    }),
    removePodSandbox: admitted("removePodSandbox", async (request) => {
      await removeSandbox(world, request.podSandboxId);
      return {};
    }),
    podSandboxStatus: admitted("podSandboxStatus", (request) => sandboxStatus(store, request)),
    listPodSandbox: admitted("listPodSandbox", (request) => ({
      items: listSandboxes(store, request.filter, script.faults.maxMessageBytes),
    })),
    createContainer: admitted("createContainer", (request) => ({ containerId: createContainer(store, request) })),
    startContainer: admitted("startContainer", (request) => {
      startContainer(store, request.containerId);
      return {};
    }),
    stopContainer: admitted("stopContainer", (request) => {
      stopContainer(store, request.containerId, request.timeout);
      return {};
    }),
    removeContainer: admitted("removeContainer", (request) => {
      removeContainer(store, request.containerId);
      return {};
    }),
    listContainers: admitted("listContainers", (request) => ({
      containers: listContainers(store, request.filter, script.faults.maxMessageBytes),
    })),
    containerStatus: admitted("containerStatus", (request) => containerStatus(store, request.containerId)),
    getContainerEvents: async function* (_request, context) {
      await script.admit("getContainerEvents");
      const signal = AbortSignal.any([context.signal, script.power]);
      for await (const [event] of on(store.events, "change", { signal })) yield eventMessage(event);
    },
  };
}

function eventMessage(event: StoreEvent): Pick<ContainerEventResponse, "containerId" | "containerEventType"> {
  return { containerId: event.id, containerEventType: event.type };
}
