import type { Any } from "../../src/runtime/gen/google/protobuf/any.ts";
import { NamespaceMode } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { type ContainerRecord, isHostNetwork, type SandboxRecord } from "./store.ts";

/** The CRI plugin's extension of a sandbox record: JSON inside an Any, with Go's field names. */
export function sandboxExtension(sandbox: SandboxRecord): Any {
  const { metadata, logDirectory, labels, annotations } = sandbox.config;
  const network = isHostNetwork(sandbox.config) ? NamespaceMode.NODE : undefined;
  return jsonAny("github.com/containerd/cri/pkg/store/sandbox/Metadata", {
    ID: sandbox.id,
    Name: sandbox.name,
    Config: {
      metadata: metadata && { name: metadata.name, uid: metadata.uid, namespace: metadata.namespace },
      log_directory: logDirectory,
      labels,
      annotations,
      linux: { security_context: { namespace_options: { network } } },
    },
    NetNSPath: sandbox.netnsPath,
    IP: sandbox.address ?? "",
    AdditionalIPs: null,
    RuntimeHandler: "",
    CNIResult: cniResult(sandbox),
    ProcessLabel: "",
  });
}

export function containerExtension(container: ContainerRecord): Any {
  return jsonAny("github.com/containerd/cri/pkg/store/container/Metadata", {
    ID: container.id,
    Name: container.name,
    SandboxID: container.sandboxId,
    LogPath: container.logPath,
  });
}

/** go-cni's result, null until ADD has completed. */
export function cniResult(sandbox: SandboxRecord) {
  if (sandbox.address === undefined) return null;
  return {
    Interfaces: {
      eth0: { IPConfigs: [{ IP: sandbox.address, Gateway: "10.88.0.1" }], Mac: "", Sandbox: sandbox.netnsPath },
      lo: { IPConfigs: [{ IP: "127.0.0.1", Gateway: "" }], Mac: "00:00:00:00:00:00", Sandbox: sandbox.netnsPath },
    },
    DNS: [{}, {}],
    Routes: null,
  };
}

function jsonAny(typeUrl: string, metadata: unknown): Any {
  return { typeUrl, value: new TextEncoder().encode(JSON.stringify({ Version: "v1", Metadata: metadata })) };
}
