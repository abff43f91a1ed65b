import { containerdServices } from "./containerd-services.ts";
import { criService } from "./cri-service.ts";
import { memoryNetwork, type Network } from "./network.ts";
import { type Population, populate } from "./population.ts";
import { type Faults, Script } from "./script.ts";
import { socketServer } from "./server.ts";
import { CNI_BIN_DIR } from "./status.ts";
import { Store } from "./store.ts";
import type { World } from "./world.ts";

export interface SimulatedOptions {
  /** The listen path. A stale file is replaced. */
  readonly socket: string;
  /** Whether containerd's own services answer besides CRI; without them it counts as another runtime. Default true. */
  readonly containerd?: boolean;
  /** Default: in memory only. */
  readonly network?: Network;
  /** The reported version. The behaviour is always that of 2.3. */
  readonly version?: string;
  /** The directory that it reports for its CNI plugins. */
  readonly cniBinDir?: string | undefined;
}

/** A container runtime without containers: containerd's rules about names, records and failures, without processes. */
export interface SimulatedRuntime {
  readonly socket: string;
  /** Adds sandboxes as if they had been created earlier; returns their ids. */
  addSandboxes(count: number, population?: Population): readonly string[];
  /** Sets faults; each key stays until it is set again. */
  script(faults: Partial<Faults>): void;
  /** The runtime is killed and restarted; pods keep running. */
  restart(): Promise<void>;
  /** The machine is powered off and on: no process is left, every record is. */
  powerCut(): Promise<void>;
  close(): Promise<void>;
}

export async function startSimulated(options: SimulatedOptions): Promise<SimulatedRuntime> {
  const world: World = {
    store: new Store(),
    script: new Script(),
    network: options.network ?? memoryNetwork(),
    version: options.version ?? "2.3.4",
    socket: options.socket,
    cniBinDir: options.cniBinDir ?? CNI_BIN_DIR,
  };
  const { store, script } = world;
  const handlers = new Map([...criService(world), ...(options.containerd === false ? [] : containerdServices(store))]);
  const server = socketServer(options.socket, handlers);
  await server.listen();

  async function kill(): Promise<void> {
    script.cutPower();
    await server.kill();
  }

  return {
    socket: options.socket,
    addSandboxes: (count, population) => populate(world, count, population),
    script: (faults) => script.change(faults),
    restart: async () => {
      await kill();
      store.recover();
      await server.listen();
    },
    powerCut: async () => {
      await kill();
      store.loseProcesses();
      store.recover();
      await server.listen();
    },
    close: kill,
  };
}
