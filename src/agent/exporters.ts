import { setTimeout as sleep } from "node:timers/promises";
import { describeError } from "../heal/system-error.ts";
import type { Store } from "./store.ts";

/** How the agent is reached, and where it writes. */
export interface ExportersOptions {
  readonly store: Store;
  /** HOST:PORT; empty: nowhere. */
  readonly listen: string;
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
  readonly tokenFile?: string;
  readonly textfile?: string;
  readonly readyWithinMs: () => number;
  readonly onListening: (address: string) => void;
  readonly say: (problem: string) => void;
}

interface Closable {
  close(): Promise<void>;
}

const RETRY_MS = 30_000;

/**
 * Opens what shows the agent to the outside. A port that is taken or a certificate that is missing is said and tried
 * again: nobody should lose the healing for want of a page.
 */
export function openExporters({ listen, textfile, ...options }: ExportersOptions): Closable {
  const { store, onListening, say } = options;
  const exporters = [
    ...(listen === ""
      ? []
      : [
          keepOpening(say, async () => {
            const { openAgentServer } = await import("./http/server.ts");
            const server = await openAgentServer({ ...options, listen, tell: say });
            onListening(server.address);
            return server;
          }),
        ]),
    ...(textfile === undefined
      ? []
      : [
          keepOpening(say, async () => {
            const { textfileWriter } = await import("./textfile.ts");
            return textfileWriter({ store, path: textfile, tell: say });
          }),
        ]),
  ];
  return {
    close: async () => {
      await Promise.all(exporters.map((face) => face.close()));
    },
  };
}

/** Tries until it is open or nobody wants it any more; each new reason is said once. */
function keepOpening(say: ExportersOptions["say"], open: () => Promise<Closable>): Closable {
  const stop = new AbortController();

  async function attempt(): Promise<Closable | undefined> {
    let said = "";
    while (!stop.signal.aborted) {
      try {
        return await open();
      } catch (thrown) {
        const reason = describeError(thrown);
        if (reason !== said) say(`${reason} It is tried again every ${RETRY_MS / 1000} s.`);
        said = reason;
      }
      await sleep(RETRY_MS, undefined, { signal: stop.signal, ref: false }).catch(() => undefined);
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
