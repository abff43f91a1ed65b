import { pause } from "../host/poll.ts";
import { describeError } from "../host/source.ts";
import type { AgentServerOptions } from "./http/server.ts";

/** Listen address and output files of the agent. An empty address disables the server. */
export interface ExportersOptions extends AgentServerOptions {
  readonly textfile?: string;
  readonly onListening: (address: string) => void;
}

interface Closable {
  close(): Promise<void>;
}

const RETRY_MS = 30_000;

/**
 * Opens the status server and the metrics file. A port in use or a missing certificate is logged and retried: healing
 * does not depend on them.
 */
export function openExporters({ listen, textfile, ...options }: ExportersOptions): Closable {
  const { store, onListening, warn } = options;
  const exporters: Closable[] = [];
  if (listen !== "") {
    const openServer = async () => {
      const { openAgentServer } = await import("./http/server.ts");
      const server = await openAgentServer({ ...options, listen });
      onListening(server.address);
      return server;
    };
    exporters.push(keepOpening("status server failed to start; retrying", warn, openServer));
  }
  if (textfile !== undefined) {
    const openFile = async () => {
      const { textfileWriter } = await import("./metrics/agent-metrics.ts");
      return textfileWriter({ store, path: textfile, warn });
    };
    exporters.push(keepOpening("metrics file failed to open; retrying", warn, openFile));
  }
  return {
    close: async () => {
      await Promise.all(exporters.map((exporter) => exporter.close()));
    },
  };
}

/** Retries until it is open or closed by the caller; logs each new reason once. */
function keepOpening(message: string, warn: ExportersOptions["warn"], open: () => Promise<Closable>): Closable {
  const stop = new AbortController();

  async function attempt(): Promise<Closable | undefined> {
    let reported = "";
    while (!stop.signal.aborted) {
      try {
        return await open();
      } catch (thrown) {
        const reason = describeError(thrown);
        if (reason !== reported) warn(message, reason);
        reported = reason;
      }
      await pause(RETRY_MS, stop.signal);
    }
    return undefined;
  }

  const opening = attempt();
  return {
    close: async () => {
      stop.abort();
      await (await opening)?.close();
    },
  };
}
