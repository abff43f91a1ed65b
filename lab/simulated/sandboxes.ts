import { podUid, sandboxName } from "../../src/node/types/ids.ts";
import { GrpcError } from "../../src/runtime/errors.ts";
import type { PodSandboxConfig } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { removeContainer } from "./containers.ts";
import { addNetwork, delNetwork } from "./network.ts";
import { refusal } from "./refusal.ts";
import { quoted } from "./registrar.ts";
import { isPowerCut } from "./script.ts";
import { isHostNetwork, newId, nowNanos, type SandboxRecord } from "./store.ts";
import type { World } from "./world.ts";

export async function runSandbox(world: World, config: PodSandboxConfig | undefined): Promise<string> {
  const { store, script, network } = world;
  if (!config?.metadata) throw refusal("sandbox config must include metadata");
  const id = newId();
  const name = sandboxName({ ...config.metadata, uid: podUid(config.metadata.uid) });
  const taken = store.sandboxNames.reserve(name, id);
  if (taken !== undefined) throw refusal(`failed to reserve sandbox name ${quoted(name)}: ${taken}`);

  const sandbox = store.beginSandbox(id, name, config);
  if (!isHostNetwork(config)) {
    try {
      sandbox.address = await addNetwork(network, script, id, config.metadata.name);
    } catch (error) {
      if (isPowerCut(error)) throw error;
      // The rollback's DEL may fail as well; containerd 2.x continues, because no ADD ever completed.
      await delNetwork(network, script, sandbox);
      store.dropSandbox(id);
      throw refusal(`failed to setup network for sandbox ${quoted(id)}: ${textOf(error)}`);
    }
  }
  store.completeSandbox(sandbox, nowNanos());
  return id;
}

/** Never releases the name. */
export async function stopSandbox(world: World, id: string): Promise<void> {
  const sandbox = visible(world, id);
  if (sandbox) await stop(world, sandbox);
}

export async function removeSandbox(world: World, id: string): Promise<void> {
  const sandbox = visible(world, id);
  if (!sandbox) return;
  try {
    await stop(world, sandbox);
  } catch (error) {
    if (!(error instanceof GrpcError)) throw error;
    throw refusal(`failed to forcibly stop sandbox ${quoted(id)}: ${error.message}`);
  }
  for (const container of world.store.containersOf(id)) removeContainer(world.store, container.id);
  world.store.dropSandbox(id);
}

async function stop(world: World, sandbox: SandboxRecord): Promise<void> {
  const { store, script, network } = world;
  for (const container of store.containersOf(sandbox.id)) {
    store.endContainer(container, { exitCode: 137, reason: "Error" });
  }
  store.haltSandbox(sandbox);
  if (isHostNetwork(sandbox.config)) return;
  const failure = await delNetwork(network, script, sandbox);
  if (failure !== undefined && sandbox.address !== undefined) {
    throw refusal(`failed to destroy network for sandbox ${quoted(sandbox.id)}: ${failure}`);
  }
  sandbox.netnsOpen = false;
}

function visible(world: World, id: string): SandboxRecord | undefined {
  const sandbox = world.store.sandboxes.get(id);
  return sandbox?.stage === "complete" ? sandbox : undefined;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
