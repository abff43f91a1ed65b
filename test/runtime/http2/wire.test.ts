import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { usePeerPlace } from "../../support/peer-place.ts";
import { listenRaw } from "../../support/socket-servers.ts";

const CLIENT = new URL("wire-client.ts", import.meta.url).pathname;
const BUN = "node_modules/.bin/bun";
/** Long enough to fill every buffer between the two ends. */
const FULL_MS = 100;

const place = usePeerPlace();

/** What a client in a separate process received. */
async function heardBy(engine: string, ...args: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(engine, [CLIENT, ...args]);
  return JSON.parse(stdout);
}

/** Does not read at first, then everything; returns the size, and disconnects. */
async function slowReader(path: string, bytes: number) {
  return await listenRaw(path, (socket) => {
    let taken = 0;
    socket.on("data", (chunk: Buffer) => {
      taken += chunk.length;
      if (taken === bytes) socket.end(`${taken} bytes`);
    });
    socket.pause();
    void sleep(FULL_MS).then(() => socket.resume());
  });
}

describe.each([process.execPath, BUN])("wire of %s", (engine) => {
  test("accepts more than fits at once, before and after it opens, and loses nothing", async () => {
    const path = place.socket("slow.sock");
    const server = await slowReader(path, 10_000_000);
    place.onCleanUp(() => server.close());

    expect(await heardBy(engine, path, "5")).toEqual(["open", "10000000 bytes", "end plain", ...again(engine)]);
  });

  test("ends with the reason when there is no socket, and not before it was returned", async () => {
    expect(await heardBy(engine, place.socket("none.sock"), "1")).toEqual(["end ENOENT", ...again(engine)]);
  });

  test("that is closed before it opens never opens, and ignores writes", async () => {
    const path = place.socket("quiet.sock");
    const server = await listenRaw(path, () => undefined);
    place.onCleanUp(() => server.close());

    expect(await heardBy(engine, path, "1", "close")).toEqual(["end plain"]);
  });
});

/** Node reports an end by "end" or "error", and then by "close". */
function again(engine: string): readonly string[] {
  return engine === BUN ? [] : ["end plain"];
}
