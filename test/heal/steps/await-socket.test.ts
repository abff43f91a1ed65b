import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULT_WAITS, uninterrupted } from "../../../src/heal/proof/fresh-facts.ts";
import { awaitSocket } from "../../../src/heal/steps/pods.ts";
import { tempDir } from "../../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;
const servers: Server[] = [];
beforeEach(() => {
  dir = tempDir();
});
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  dir.remove();
});

async function listen(name = "csi.sock"): Promise<void> {
  const server = createServer();
  servers.push(server);
  server.listen(dir.join(name));
  await once(server, "listening");
}

/** Waits for `/csi.sock` of a host whose root is the test's directory; `meanwhile` is called at each pause. */
async function awaited({
  optional = false,
  stopped = false,
  meanwhile = () => Promise.resolve(),
}: {
  readonly optional?: boolean;
  readonly stopped?: boolean;
  readonly meanwhile?: (pause: number) => Promise<void>;
} = {}) {
  const pauses: number[] = [];
  const result = await awaitSocket(
    { kind: "await-socket", path: "/csi.sock", ...(optional && { optional }) },
    {
      hostRoot: dir.path,
      waits: { ...DEFAULT_WAITS, queryMs: 10_000, socketMs: 2000 },
      interruption: { ...uninterrupted(), ...(stopped && { stop: AbortSignal.abort() }) },
      sleep: async (milliseconds) => {
        pauses.push(milliseconds);
        await meanwhile(pauses.length);
      },
    },
  );
  return { result, waitedMs: pauses.reduce((sum, one) => sum + one, 0), pauses: pauses.length };
}

test("does not wait for a socket that is served", async () => {
  await listen();
  expect(await awaited()).toEqual({ result: { kind: "done" }, waitedMs: 0, pauses: 0 });
});

test("waits until the driver listens again", async () => {
  const { result, pauses } = await awaited({ meanwhile: (pause) => (pause === 3 ? listen() : Promise.resolve()) });
  expect([result, pauses]).toEqual([{ kind: "done" }, 3]);
});

test("refuses when no process listens within the timeout, and names socket and timeout", async () => {
  const { result, waitedMs } = await awaited();
  expect(result).toEqual({
    kind: "refused",
    code: "socket-not-served",
    reason: expect.stringMatching(/\/csi\.sock within 2 s/) as unknown,
  });
  expect(waitedMs).toBe(2000);
});

test("refuses a link to a socket that another process serves", async () => {
  await listen("other.sock");
  symlinkSync("/other.sock", dir.join("csi.sock"));
  expect((await awaited()).result).toMatchObject({ kind: "refused", code: "socket-not-served" });
});

test("continues without an optional socket", async () => {
  expect((await awaited({ optional: true })).result).toEqual({ kind: "unneeded" });
});

test("does not wait when the run is stopping", async () => {
  const { result, pauses } = await awaited({ stopped: true });
  expect([result, pauses]).toMatchObject([{ kind: "refused", code: "socket-not-served" }, 0]);
});
