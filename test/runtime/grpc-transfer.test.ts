import { once } from "node:events";
import type { ServerHttp2Stream, ServerOptions } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { GrpcStatus } from "../../src/runtime/errors.ts";
import { ListPodSandboxResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import {
  type CallOptions,
  ENDLESS,
  frame,
  type GrpcChannel,
  type Method,
  type OnObject,
  openChannel,
  TextReader,
} from "../../src/runtime/grpc.ts";
import { collect } from "../support/collect.ts";
import { listenHttp2 } from "../support/http2-peer.ts";
import { usePeerPlace } from "../support/peer-place.ts";

/** Only a hang guard. */
const BOUNDS = { timeoutMs: 30_000 };
const MIB = 1024 * 1024;
const HEADERS = { ":status": 200, "content-type": "application/grpc" };

/** Messages are raw bytes. */
const call: Method<Uint8Array, Uint8Array> = { path: "/call", encode: (bytes) => bytes, decode: (bytes) => bytes };

const place = usePeerPlace();

async function serving(
  onStream: Parameters<typeof listenHttp2>[1],
  options: ServerOptions = {},
): Promise<{ channel: GrpcChannel; peer: Awaited<ReturnType<typeof listenHttp2>> }> {
  // Node's default memory limit ends long streams.
  const peer = await listenHttp2(place.socket("peer.sock"), onStream, { maxSessionMemory: 1000, ...options });
  const channel = openChannel(place.socket("peer.sock"));
  place.onCleanUp(
    () => channel.close(),
    () => peer.close(),
  );
  return { channel, peer };
}

function answer(stream: ServerHttp2Stream, ...messages: readonly Uint8Array[]): void {
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
  stream.respond(HEADERS, { waitForTrailers: true });
  for (const message of messages) stream.write(frame(message));
  stream.end();
}

/** Answers after it has read the whole request. */
async function echo(stream: ServerHttp2Stream): Promise<void> {
  const received: Uint8Array[] = [];
  stream.on("data", (chunk: Uint8Array) => received.push(chunk));
  await once(stream, "end");
  answer(stream, Buffer.concat(received).subarray(5));
}

function abortedSoon(): CallOptions {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 100);
  return { ...BOUNDS, signal: controller.signal };
}

function pattern(length: number): Buffer {
  return Buffer.alloc(
    length,
    Uint8Array.from({ length: 251 }, (_, index) => index),
  );
}

describe("data from node:http2", () => {
  test("an answer of 20 MB arrives completely", async () => {
    const message = pattern(20 * MIB);
    const { channel } = await serving((stream) => answer(stream, message));

    const received = await channel.unary(call, Buffer.alloc(0), BOUNDS);

    expect(message.equals(received)).toBe(true);
  });

  test("thousands of small messages arrive completely and in order", async () => {
    const messages = Array.from({ length: 5000 }, (_, index) => Buffer.from(`message ${index}`));
    const { channel } = await serving((stream) => answer(stream, ...messages));

    const received = await collect(channel.stream(call, Buffer.alloc(0), BOUNDS));

    expect(received.map((bytes) => Buffer.from(bytes).toString())).toEqual(messages.map(String));
  });
});

test("a message of a million objects is given up, also in a stream without end", async () => {
  const { channel } = await serving((stream) => answer(stream, Buffer.alloc(2 * MIB, Buffer.of(0x0a, 0))));
  const decode = (bytes: Uint8Array, onObject?: OnObject) =>
    ListPodSandboxResponse.decode(new TextReader(bytes, onObject));

  const received = collect(channel.stream({ ...call, decode }, Buffer.alloc(0), { ...BOUNDS, limits: ENDLESS }));

  await expect(received).rejects.toMatchObject({ kind: "endless" });
});

describe("data to node:http2", () => {
  test.each([
    ["of an ordinary server", {}],
    ["of a server with small windows", { settings: { initialWindowSize: 1000 } }],
    ["of a server with large frames", { settings: { maxFrameSize: 100_000 } }],
    ["of a server without a header table", { settings: { headerTableSize: 0 } }],
  ])("a request of 300 KB passes through the windows %s", async (_what, options) => {
    const message = pattern(300_000);
    const { channel } = await serving((stream) => void echo(stream), options);

    const answers = await Promise.all(Array.from({ length: 5 }, () => channel.unary(call, message, BOUNDS)));

    for (const received of answers) expect(message.equals(received)).toBe(true);
  });

  test("concurrent calls stay within the server's limit", async () => {
    let open = 0;
    let most = 0;
    const { channel, peer } = await serving(
      (stream) => {
        most = Math.max(most, ++open);
        stream.once("close", () => open--);
        void echo(stream);
      },
      { settings: { maxConcurrentStreams: 10 } },
    );
    const texts = Array.from({ length: 200 }, (_, index) => `call ${index}`);

    const answers = await Promise.all(texts.map((text) => channel.unary(call, Buffer.from(text), BOUNDS)));

    expect(answers.map((bytes) => Buffer.from(bytes).toString())).toEqual(texts);
    expect(most).toBeLessThanOrEqual(10);
    expect(peer.connections()).toBe(1);
  });
});

describe("an aborted call", () => {
  test.each([
    ["by its timeout", () => ({ timeoutMs: 100 }), GrpcStatus.deadlineExceeded],
    ["by its caller", abortedSoon, GrpcStatus.cancelled],
  ])("%s is reset at the server, and others continue", async (_what, bounds, status) => {
    const codes: number[] = [];
    const { channel, peer } = await serving((stream, headers) => {
      if (headers[":path"] === call.path) return void echo(stream);
      stream.once("close", () => codes.push(stream.rstCode));
      stream.respond(HEADERS);
      stream.write(frame(Buffer.alloc(MIB)));
    });

    const endless = { ...call, path: "/endless" };
    await expect(channel.unary(endless, Buffer.alloc(0), bounds())).rejects.toMatchObject({ cause: { status } });
    await expect(channel.unary(call, Buffer.from("still here"), BOUNDS)).resolves.toHaveLength(10);

    expect(codes).toEqual([8]);
    expect(peer.connections()).toBe(1);
  });

  test("because of an unreadable answer does not affect the others", async () => {
    const { channel, peer } = await serving((stream, headers) => {
      if (headers[":path"] === call.path) return void echo(stream);
      stream.respond(HEADERS);
      stream.write(Buffer.from([1, 0, 0, 0, 0]));
    });

    const compressed = channel.unary({ ...call, path: "/compressed" }, Buffer.alloc(0), BOUNDS);
    const others = Promise.all(Array.from({ length: 10 }, () => channel.unary(call, Buffer.alloc(3), BOUNDS)));

    await expect(compressed).rejects.toThrow("compressed");
    await expect(others).resolves.toHaveLength(10);
    expect(peer.connections()).toBe(1);
  });
});

describe("a server that shuts down", () => {
  test("with GOAWAY finishes started streams, and new calls use the next connection", async () => {
    const started = Promise.withResolvers<ServerHttp2Stream>();
    const { channel, peer } = await serving((stream, headers) => {
      if (headers[":path"] === "/slow") started.resolve(stream);
      else void echo(stream);
    });
    const slow = channel.unary({ ...call, path: "/slow" }, Buffer.from("slow"), BOUNDS);
    const stream = await started.promise;

    stream.session?.goaway();
    // A call that crosses the GOAWAY fails: the server has not processed it.
    while (peer.connections() === 1) await channel.unary(call, Buffer.alloc(0), BOUNDS).catch(() => undefined);
    answer(stream, Buffer.from("at last"));

    expect(Buffer.from(await slow).toString()).toBe("at last");
  });

  test("during an answer ends all its calls with the reason, and the next call reconnects", async () => {
    const { channel, peer } = await serving((stream, headers) => {
      if (headers[":path"] === call.path) return void echo(stream);
      stream.respond(HEADERS);
      stream.write(frame(Buffer.alloc(100)), () => stream.session?.socket.destroy());
    });
    const dying = { ...call, path: "/dying" };

    const outcomes = await Promise.allSettled([
      channel.unary(dying, Buffer.alloc(0), BOUNDS),
      collect(channel.stream(dying, Buffer.alloc(0), BOUNDS)),
    ]);

    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ reason: { cause: { status: GrpcStatus.unavailable } } });
    await expect(channel.unary(call, Buffer.alloc(3), BOUNDS)).resolves.toHaveLength(3);
    expect(peer.connections()).toBe(2);
  });
});

describe("a slow reader", () => {
  test("blocks its own stream at its window, and no other", async () => {
    const message = pattern(MIB);
    const count = 40;
    let handedOver = 0;
    async function handOver(stream: ServerHttp2Stream): Promise<void> {
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
      stream.respond(HEADERS, { waitForTrailers: true });
      for (; handedOver < count; handedOver++) {
        await new Promise<void>((resolve) => stream.write(frame(message), () => resolve()));
      }
      stream.end();
    }
    const { channel } = await serving((stream, headers) => {
      if (headers[":path"] === "/large") answer(stream, pattern(10 * MIB));
      else void handOver(stream);
    });

    const reader = channel.stream(call, Buffer.alloc(0), BOUNDS)[Symbol.asyncIterator]();
    await reader.next();
    const large = await channel.unary({ ...call, path: "/large" }, Buffer.alloc(0), BOUNDS);
    for (let turns = 0; turns < 100; turns++) await turn();
    const handedOverMeanwhile = handedOver;
    let read = 1;
    for (let result = await reader.next(); result.done !== true; result = await reader.next()) {
      expect(message.equals(result.value)).toBe(true);
      read++;
    }

    expect(large).toHaveLength(10 * MIB);
    // Four in the window, one read, and what the server buffers.
    expect(handedOverMeanwhile).toBeLessThan(10);
    expect(read).toBe(count);
  });
});
