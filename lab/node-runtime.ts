import { existsSync } from "node:fs";
import { type CriClient, openCri } from "../src/runtime/cri.ts";
import type { RuntimeSetup } from "./runtime-setup.ts";
import { answering, type ServiceHost, service } from "./service.ts";

/** The runtime's process in a node and the client to it. */
export interface NodeRuntime {
  readonly cri: CriClient;
  start(): Promise<void>;
  end(signal: "KILL" | "TERM"): Promise<void>;
  closeClient(): void;
}

export function nodeRuntime(host: ServiceHost, { name, log, command, socket }: RuntimeSetup): NodeRuntime {
  const running = service(host, name, log, command);
  let client: CriClient | undefined;

  function cri(): CriClient {
    client ??= openCri(host.livePath(socket));
    return client;
  }

  function closeClient(): void {
    client?.close();
    client = undefined;
  }

  async function answers(): Promise<true | undefined> {
    if (!existsSync(host.livePath(socket))) return undefined;
    // A separate client: an open connection would keep the owner's process alive.
    const probe = openCri(host.livePath(socket));
    const answer = probe.version({ timeoutMs: 5000 }).then(
      () => true as const,
      // Not listening yet, or a stale socket: retried.
      () => undefined,
    );
    return answer.finally(() => probe.close());
  }

  return {
    get cri() {
      return cri();
    },
    closeClient,
    start: async () => {
      if (running.pid !== undefined) return;
      await running.start();
      await answering(running, answers).catch(async (failed: Error) => {
        if (running.pid !== undefined) throw failed;
        // As the units of containerd and CRI-O do (Restart=always): of some thousand starts, one ends at once.
        console.warn(`${failed.message}\nIt is started again.`);
        await running.start();
        await answering(running, answers);
      });
    },
    end: async (signal) => {
      closeClient();
      await running.end(signal);
    },
  };
}
