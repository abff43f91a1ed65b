import { mkdir } from "node:fs/promises";
import {
  type ContainerId,
  containerId,
  type PodRef,
  podUid,
  type SandboxId,
  sandboxId,
  sandboxName,
} from "../src/node/types/ids.ts";
import type { ContainerConfig, PodSandboxConfig } from "../src/runtime/cri.ts";
import { ContainerState, NamespaceMode } from "../src/runtime/gen/runtime/v1/cri.ts";
import type { LabNode } from "./node.ts";
import { PAUSE_IMAGE } from "./pause-image.ts";
import { until } from "./poll.ts";

interface ContainerSpec {
  readonly name: string;
  /** Defaults to running forever. */
  readonly command?: readonly string[];
  readonly attempt?: number;
  readonly mounts?: readonly { readonly hostPath: string; readonly containerPath: string }[];
}

export interface PodSpec {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly attempt?: number;
  readonly hostNetwork?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly containers?: readonly ContainerSpec[];
}

export interface LabPod {
  readonly ref: PodRef;
  /** As the runtime reserves it. */
  readonly reservedName: string;
  readonly sandboxId: SandboxId;
  readonly containerIds: readonly ContainerId[];
}

const SLEEP_FOREVER = ["sleep", "1000000000"] as const;

const CALL_MS = 120_000;
const AT_ONCE = 4;

/** Creates a pod like kubelet: sandbox, then its containers in order, with kubelet's labels and log paths. */
export async function runPod(node: LabNode, spec: PodSpec): Promise<LabPod> {
  const ref = podRef(spec);
  const config = sandboxConfig(spec, ref);
  const id = await node.cri.runPodSandbox(config, { timeoutMs: CALL_MS });
  const containerIds: ContainerId[] = [];
  for (const container of spec.containers ?? []) {
    containerIds.push(await runContainer(node, id, config, ref, container));
  }
  return { ref, reservedName: sandboxName(ref), sandboxId: sandboxId(id), containerIds };
}

/** Pods `<prefix>-0` and so on, with limited concurrency. */
export async function runPods(node: LabNode, count: number, spec: Partial<PodSpec> = {}): Promise<readonly LabPod[]> {
  const pods: LabPod[] = [];
  const prefix = spec.name ?? "pod";
  for (let start = 0; start < count; start += AT_ONCE) {
    const batch = Array.from({ length: Math.min(AT_ONCE, count - start) }, (_, index) =>
      runPod(node, { ...spec, name: `${prefix}-${start + index}` }),
    );
    pods.push(...(await Promise.all(batch)));
  }
  return pods;
}

/** A finished pod: its container printed something and exited 0, its sandbox was stopped and kept. */
export async function finishedPod(node: LabNode, spec: PodSpec = { name: "finished" }): Promise<LabPod> {
  const containers = spec.containers ?? [{ name: "job", command: ["sh", "-c", "echo first line; echo last line"] }];
  const pod = await runPod(node, { ...spec, containers });
  for (const id of pod.containerIds) await containerExited(node, id);
  await node.cri.stopPodSandbox(pod.sandboxId, { timeoutMs: CALL_MS });
  return pod;
}

async function containerExited(node: LabNode, id: string): Promise<number> {
  return until(`container ${id} has exited`, CALL_MS, async () => {
    const { status } = await node.cri.containerStatus(id, { timeoutMs: CALL_MS });
    return status?.state === ContainerState.CONTAINER_EXITED ? status.exitCode : undefined;
  });
}

/** Only the sandbox request, for callers that want it to fail, hang or run twice. */
export function sandboxConfig(spec: PodSpec, ref: PodRef = podRef(spec)): PodSandboxConfig {
  const labels = {
    "io.kubernetes.pod.name": ref.name,
    "io.kubernetes.pod.namespace": ref.namespace,
    "io.kubernetes.pod.uid": ref.uid,
    ...spec.labels,
  };
  const config = {
    metadata: { name: ref.name, namespace: ref.namespace, uid: ref.uid, attempt: ref.attempt },
    // A pod in the host network has no hostname of its own, and runc refuses to set one.
    hostname: spec.hostNetwork ? "" : ref.name,
    logDirectory: logDirectory(ref),
    labels,
    annotations: { "kubernetes.io/config.source": "api", ...spec.annotations },
  };
  if (!spec.hostNetwork) return config;
  return { ...config, linux: { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } } };
}

export function podRef(spec: PodSpec): PodRef {
  return {
    namespace: spec.namespace ?? "default",
    name: spec.name,
    uid: podUid(spec.uid ?? crypto.randomUUID()),
    attempt: spec.attempt ?? 0,
  };
}

function logDirectory(ref: PodRef): string {
  return `/var/log/pods/${ref.namespace}_${ref.name}_${ref.uid}`;
}

async function runContainer(
  node: LabNode,
  sandbox: string,
  podConfig: PodSandboxConfig,
  ref: PodRef,
  spec: ContainerSpec,
): Promise<ContainerId> {
  const attempt = spec.attempt ?? 0;
  const config = {
    metadata: { name: spec.name, attempt },
    // CRI-O creates no container without the second, which kubelet always sends.
    image: { image: PAUSE_IMAGE, userSpecifiedImage: PAUSE_IMAGE },
    command: [...(spec.command ?? SLEEP_FOREVER)],
    mounts: [...(spec.mounts ?? [])],
    labels: {
      "io.kubernetes.container.name": spec.name,
      "io.kubernetes.pod.name": ref.name,
      "io.kubernetes.pod.namespace": ref.namespace,
      "io.kubernetes.pod.uid": ref.uid,
    },
    annotations: { "io.kubernetes.container.restartCount": String(attempt) },
    logPath: `${spec.name}/${attempt}.log`,
  } satisfies ContainerConfig;
  await mkdir(node.path(`${logDirectory(ref)}/${spec.name}`), { recursive: true });
  const id = await node.cri.createContainer(sandbox, config, podConfig, { timeoutMs: CALL_MS });
  await node.cri.startContainer(id, { timeoutMs: CALL_MS });
  return containerId(id);
}
