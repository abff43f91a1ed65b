import { randomUUID } from "node:crypto";
import { podUid, sandboxName } from "../../src/node/types/ids.ts";
import { ContainerConfig, ContainerState, PodSandboxConfig } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { newId, nowNanos, type SandboxRecord } from "./store.ts";
import type { World } from "./world.ts";

/**
 * The history of the sandboxes.
 * - `ready`: running. - `dead`: were running when the machine lost power.
 * - `finished`: ended orderly and kept for their logs. - `half-made`: the crash came before they were complete.
 */
export type SandboxFate = "ready" | "dead" | "finished" | "half-made";

export interface Population {
  readonly state?: SandboxFate;
  /** Pods are distributed over them in turn. Default: one, "default". */
  readonly namespaces?: readonly string[];
  readonly containersEach?: number;
  /** How long ago they were created. Default: ten minutes. */
  readonly ageSeconds?: number;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly namePrefix?: string;
}

export function populate(world: World, count: number, population: Population = {}): readonly string[] {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.push(addOne(world, index, population).id);
  return ids;
}

function addOne(world: World, index: number, population: Population): SandboxRecord {
  const { store, network } = world;
  const state = population.state ?? "ready";
  const createdAt = nowNanos() - BigInt(population.ageSeconds ?? 600) * 1_000_000_000n;
  const config = podConfig(index, population);
  const id = newId();
  const sandbox = store.beginSandbox(id, nameOf(config), config);
  if (state === "half-made") {
    sandbox.stage = "complete";
    sandbox.netnsOpen = false;
    return sandbox;
  }
  store.sandboxNames.reserve(sandbox.name, id);
  sandbox.address = network.add(id);
  store.completeSandbox(sandbox, createdAt);
  for (let number = 0; number < (population.containersEach ?? 1); number++) {
    addContainer(world, sandbox, `app-${number}`, createdAt, state);
  }
  if (state === "ready") return sandbox;
  store.haltSandbox(sandbox);
  sandbox.netnsOpen = false;
  if (state === "finished") network.del(id);
  return sandbox;
}

function addContainer(world: World, sandbox: SandboxRecord, name: string, createdAt: bigint, state: SandboxFate): void {
  const { store } = world;
  const id = newId();
  const pod = sandbox.config.metadata;
  const fullName = `${name}_${pod?.name}_${pod?.namespace}_${pod?.uid}_0`;
  store.containerNames.reserve(fullName, id);
  const container = {
    id,
    name: fullName,
    sandboxId: sandbox.id,
    config: ContainerConfig.fromPartial({
      metadata: { name, attempt: 0 },
      image: { image: "registry.k8s.io/pause:3.9" },
      labels: { ...sandbox.config.labels, "io.kubernetes.container.name": name },
      logPath: `${name}/0.log`,
    }),
    createdAt,
    logPath: `${sandbox.config.logDirectory}/${name}/0.log`,
    state: ContainerState.CONTAINER_CREATED,
    startedAt: 0n,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    pid: 0,
  };
  store.addContainer(container);
  store.startContainer(container, createdAt);
  if (state === "dead") store.endContainer(container, { exitCode: 255, reason: "Unknown" });
  if (state === "finished") store.endContainer(container, { exitCode: 0, reason: "Completed" });
}

function podConfig(index: number, population: Population): PodSandboxConfig {
  const namespaces = population.namespaces ?? ["default"];
  const namespace = namespaces[index % namespaces.length] ?? "default";
  const name = `${population.namePrefix ?? "pod"}-${index}`;
  const uid = randomUUID();
  return PodSandboxConfig.fromPartial({
    metadata: { name, namespace, uid, attempt: 0 },
    hostname: name,
    logDirectory: `/var/log/pods/${namespace}_${name}_${uid}`,
    labels: { "io.kubernetes.pod.name": name, "io.kubernetes.pod.namespace": namespace, "io.kubernetes.pod.uid": uid },
    annotations: { ...population.annotations },
  });
}

function nameOf(config: PodSandboxConfig): string {
  const { metadata } = config;
  if (!metadata) throw new Error("a pod without metadata has no name");
  return sandboxName({ ...metadata, uid: podUid(metadata.uid) });
}
