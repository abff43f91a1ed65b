import { gzipSync } from "node:zlib";
import { afterEach } from "vitest";
import type { StatusPage } from "../../../src/agent/http/routes.ts";
import { type AgentServerOptions, openAgentServer } from "../../../src/agent/http/server.ts";
import { openStore, type Store } from "../../../src/agent/state/store.ts";
import { freshState } from "../metrics/agent-state.ts";

const HTML = "<!doctype html><style>p{}</style><title>unghost</title><script>1</script>";

export const PAGE: StatusPage = {
  html: HTML,
  gzip: gzipSync(HTML).toString("base64"),
  scriptHashes: ["sha256-script"],
  styleHashes: ["sha256-style"],
};

type AgentServer = Awaited<ReturnType<typeof openAgentServer>>;

export interface Opened {
  readonly server: AgentServer;
  readonly store: Store;
  readonly address: string;
  /** The warnings of the server. */
  readonly problems: readonly string[];
}

const servers: AgentServer[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** An agent's server on a free port of loopback, closed after the test. */
export async function opened(options: Partial<AgentServerOptions> = {}): Promise<Opened> {
  const store = openStore(freshState());
  const problems: string[] = [];
  const server = await openAgentServer({
    store,
    listen: "127.0.0.1:0",
    readyWithinMs: () => 60_000,
    warn: (...problem) => problems.push(problem.join(": ")),
    page: () => Promise.resolve(PAGE),
    ...options,
  });
  servers.push(server);
  return { server, store, address: server.address, problems };
}
