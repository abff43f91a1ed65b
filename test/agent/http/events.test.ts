import { get, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import type { AgentState } from "../../../src/agent/state/state.ts";
import type { Store } from "../../../src/agent/state/store.ts";
import { opened } from "./opened.ts";

const HANG_MS = 30_000;
const connections: { destroy(): unknown }[] = [];

afterEach(() => {
  for (const connection of connections.splice(0)) connection.destroy();
});

interface Listening {
  readonly response: IncomingMessage;
  /** The received states. */
  readonly states: readonly { readonly version: string }[];
  readonly raw: () => string;
  readonly ended: () => boolean;
}

function listen(address: string): Promise<Listening> {
  return new Promise((resolve, reject) => {
    const request = get(address, { path: "/api/events", agent: false }, (response) => {
      let raw = "";
      let ended = false;
      const states: { readonly version: string }[] = [];
      response.setEncoding("utf8").on("data", (chunk: string) => {
        raw += chunk;
        const frames = raw.split("\n\n").slice(0, -1);
        states.splice(0, states.length, ...frames.filter((frame) => frame.startsWith("data: ")).map(stateIn));
      });
      response.once("close", () => {
        ended = true;
      });
      resolve({ response, states, raw: () => raw, ended: () => ended });
    });
    request.once("error", reject);
    connections.push(request);
  });
}

function stateIn(frame: string): { readonly version: string } {
  return JSON.parse(frame.slice("data: ".length)) as { readonly version: string };
}

function setVersion(store: Store, version: string): void {
  store.update((state) => ({ ...state, version }));
}

describe("/api/events", () => {
  test("sends the state on connect, and again when it changes", async () => {
    const { address, store } = await opened();
    const { response, states } = await listen(address);
    await until("the first state", HANG_MS, () => states[0]);

    setVersion(store, "changed");

    await until("the change", HANG_MS, () => states.find(({ version }) => version === "changed"));
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("text/event-stream");
    expect(states[0]?.version).toBe("1.2.3");
  });

  test("combines many changes into few frames, and always sends the last one", async () => {
    const { address, store } = await opened();
    const { states } = await listen(address);
    await until("the first state", HANG_MS, () => states[0]);

    for (let change = 1; change <= 500; change += 1) setVersion(store, `change ${change}`);

    await until("the last change", HANG_MS, () => states.find(({ version }) => version === "change 500"));
    expect(states.length).toBeLessThan(10);
  });

  test("sends to every client", async () => {
    const { address, store } = await opened();
    const listeners = await Promise.all([listen(address), listen(address), listen(address)]);

    setVersion(store, "changed");

    for (const { states } of listeners) {
      await until("the change", HANG_MS, () => states.find(({ version }) => version === "changed"));
    }
  });

  test("limits the number of clients, and reuses a freed slot", async () => {
    const { address } = await opened();
    const listeners: Listening[] = [];
    for (let place = 0; place < 16; place += 1) listeners.push(await listen(address));

    const tooMany = await listen(address);
    listeners[0]?.response.destroy();

    expect(tooMany.response.statusCode).toBe(503);
    await until("a free place", HANG_MS, async () => {
      const again = await listen(address);
      return again.response.statusCode === 200 ? again : undefined;
    });
  });

  test("closing the server ends every stream without waiting for the clients", async () => {
    const { address, server } = await opened();
    const listener = await listen(address);

    await server.close();

    await until("the end", HANG_MS, () => (listener.ended() ? true : undefined));
    await expect(listen(address)).rejects.toThrow("ECONNREFUSED");
  });
});

describe("a slow client", () => {
  /** Requests the events and never reads them. */
  async function sleeper(address: string): Promise<Socket> {
    const { hostname, port, host } = new URL(address);
    const socket = connect(Number(port), hostname);
    connections.push(socket);
    socket.pause();
    socket.on("error", () => undefined);
    await new Promise<void>((sent) => socket.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\n\r\n`, () => sent()));
    return socket;
  }

  function bigState(): Partial<AgentState> {
    return { configProblem: "x".repeat(1_000_000) };
  }

  test("delays no other client", async () => {
    const { address, store } = await opened();
    store.update((state) => ({ ...state, ...bigState() }));
    await sleeper(address);
    const { states } = await listen(address);
    await until("the first state", HANG_MS, () => states[0]);

    for (const version of ["a", "b", "c"]) {
      setVersion(store, version);
      await until(version, HANG_MS, () => states.find((state) => state.version === version));
    }
  });
});
