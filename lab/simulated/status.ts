import {
  ContainerStatusResponse,
  type PodSandboxStatusRequest,
  PodSandboxStatusResponse,
} from "../../src/runtime/gen/runtime/v1/cri.ts";
import { found } from "./containers.ts";
import { stateOf } from "./listing.ts";
import { cniResult } from "./metadata.ts";
import { notFound } from "./refusal.ts";
import { isHostNetwork, type SandboxRecord, type Store } from "./store.ts";
import type { World } from "./world.ts";

export const CNI_CONF_DIR = "/etc/cni/net.d";
export const CNI_BIN_DIR = "/opt/cni/bin";

/** The verbose part of Status, in the format of containerd 2.x: each value is a JSON text. */
export function statusInfo(world: World): Record<string, string> {
  const config = {
    containerd: { defaultRuntimeName: "runc", runtimes: { runc: { runtimeType: "io.containerd.runc.v2" } } },
    cni: { binDir: "", binDirs: [world.cniBinDir], confDir: CNI_CONF_DIR, maxConfNum: 1, confTemplate: "", ipPref: "" },
    containerdRootDir: "/var/lib/containerd",
    containerdEndpoint: world.socket,
    rootDir: "/var/lib/containerd/io.containerd.grpc.v1.cri",
    stateDir: "/run/containerd/io.containerd.grpc.v1.cri",
  };
  const cniConfig = { PluginDirs: [world.cniBinDir], PluginConfDir: CNI_CONF_DIR, PluginMaxConfNum: 1, Prefix: "eth" };
  return {
    config: JSON.stringify(config),
    cniconfig: JSON.stringify(cniConfig),
    "lastCNILoadStatus.default": "OK",
    lastCNILoadStatus: "OK",
  };
}

export function sandboxStatus(store: Store, request: PodSandboxStatusRequest): PodSandboxStatusResponse {
  const sandbox = store.sandboxes.get(request.podSandboxId);
  if (sandbox?.stage !== "complete") {
    throw notFound("an error occurred when try to find sandbox");
  }
  const { metadata, labels, annotations, linux } = sandbox.config;
  const options = linux?.securityContext?.namespaceOptions;
  return PodSandboxStatusResponse.fromPartial({
    status: {
      id: sandbox.id,
      ...(metadata && { metadata }),
      state: stateOf(sandbox),
      createdAt: sandbox.createdAt,
      network: { ip: sandbox.netnsOpen ? (sandbox.address ?? "") : "" },
      ...(options && { linux: { namespaces: { options } } }),
      labels,
      annotations,
    },
    info: request.verbose ? { info: JSON.stringify(sandboxInfo(sandbox)) } : {},
  });
}

function sandboxInfo(sandbox: SandboxRecord) {
  return {
    pid: sandbox.pid,
    processStatus: sandbox.ready ? "running" : "deleted",
    netNamespaceClosed: !isHostNetwork(sandbox.config) && !sandbox.netnsOpen,
    runtimeHandler: "",
    runtimeType: "io.containerd.runc.v2",
    cniResult: cniResult(sandbox),
  };
}

export function containerStatus(store: Store, id: string): ContainerStatusResponse {
  const container = found(store, id);
  const { metadata, image, labels, annotations } = container.config;
  return ContainerStatusResponse.fromPartial({
    status: {
      id: container.id,
      ...(metadata && { metadata }),
      state: container.state,
      createdAt: container.createdAt,
      startedAt: container.startedAt,
      finishedAt: container.finishedAt,
      exitCode: container.exitCode,
      ...(image && { image, imageRef: image.image }),
      reason: container.reason,
      labels,
      annotations,
      logPath: container.logPath,
    },
  });
}
