import { existsSync } from "node:fs";
import { type CriClient, openCri } from "../src/runtime/cri.ts";
import { CONTAINERD_CONFIG, CONTAINERD_LOG, CONTAINERD_SOCKET } from "./runtime-config.ts";
import { answering, type ServiceHost, service } from "./service.ts";

/** The node's containerd process and the client to it. */
export interface NodeRuntime {
  readonly cri: CriClient;
  start(): Promise<void>;
  end(signal: "KILL" | "TERM"): Promise<void>;
  closeClient(): void;
}

export function nodeRuntime(host: ServiceHost): NodeRuntime {
  const containerd = service(host, "containerd", CONTAINERD_LOG, ["containerd", "--config", CONTAINERD_CONFIG]);
  let client: CriClient | undefined;

  function cri(): CriClient {
    client ??= openCri(host.livePath(CONTAINERD_SOCKET));
    return client;
  }

  function closeClient(): void {
    client?.close();
    client = undefined;
  }

  async function answers(): Promise<true | undefined> {
    if (!existsSync(host.livePath(CONTAINERD_SOCKET))) return undefined;
    // A client of its own: an open connection would keep the owner's process from ending.
    const probe = openCri(host.livePath(CONTAINERD_SOCKET));
    const answer = probe.version({ timeoutMs: 5000 }).then(
      () => true as const,
      // Not listening yet, or a socket that an earlier containerd left behind: asked again.
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
      if (containerd.pid !== undefined) return;
      await containerd.start();
      await answering(containerd, answers);
    },
    end: async (signal) => {
      closeClient();
      await containerd.end(signal);
    },
  };
}
