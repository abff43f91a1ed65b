import { execFile } from "node:child_process";
import { getEventListeners } from "node:events";
import { constants, type ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { GrpcStatus } from "../../src/runtime/errors.ts";
import { frame, type GrpcChannel, type Method, openChannel } from "../../src/runtime/grpc.ts";
import { collect } from "../support/collect.ts";
import { listenHttp2 } from "../support/http2-peer.ts";
import { usePeerPlace } from "../support/peer-place.ts";

/** Only a hang guard. */
const BOUNDS = { timeoutMs: 30_000 };
const execute = promisify(execFile);
const HEADERS = { ":status": 200, "content-type": "application/grpc" };

const echo: Method<string, string> = {
  path: "/test.Echo/Call",
  encode: (text) => new TextEncoder().encode(text),
  decode: (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
};

const place = usePeerPlace();

async function connected(onStream: Parameters<typeof listenHttp2>[1]) {
  const peer = await listenHttp2(place.socket("peer.sock"), onStream);
  return { peer, channel: channelTo("peer.sock", () => peer.close()) };
}

function channelTo(name: string, cleanUp: () => Promise<void> | void = () => {}): GrpcChannel {
  const channel = openChannel(place.socket(name));
  place.onCleanUp(() => channel.close(), cleanUp);
  return channel;
}

describe("answer", () => {
  const peers: [string, (stream: ServerHttp2Stream) => void, object][] = [
    ["reset as cancelled", (stream) => stream.close(constants.NGHTTP2_CANCEL), { status: 14, message: "" }],
    ["reset without an error", (stream) => stream.close(), { status: 14, message: "" }],
    ["reset with an error", (stream) => stream.close(2), { message: /error code NGHTTP2_INTERNAL_ERROR/ }],
    ["reset after its message", resetAfterMessage, { status: 14 }],
    ["without trailers", withoutTrailers, { status: 14, message: "" }],
    ["on a connection that ends", (stream) => stream.session?.destroy(), { status: 14 }],
    ["that is a web page", (stream) => stream.respond({ ":status": 404 }, { endStream: true }), { message: /404/ }],
    ["with half a message", halfMessage, { status: GrpcStatus.internal, message: /middle of a message/ }],
    ["with a message of nonsense", nonsense, { status: GrpcStatus.internal, message: /cannot be read/ }],
    ["with an error in its headers", (stream) => refuse(stream, 5, "n%C3%B6t"), { status: 5, message: "nöt" }],
    ["with an error badly encoded", (stream) => refuse(stream, 2, "100%"), { status: 2, message: "100%" }],
  ];

  test.each(peers)("%s fails with its kind, in a unary call and in a stream", async (_what, onStream, expected) => {
    const { channel } = await connected(onStream);

    const alone = await channel.unary(echo, "", BOUNDS).catch((error: unknown) => error);
    const streamed = await collect(channel.stream(echo, "", BOUNDS)).catch((error: unknown) => error);

    expect(alone).toMatchObject({ cause: matching(expected) });
    expect(streamed).toMatchObject({ cause: matching(expected) });
  });

  test("without a message is an empty stream, and an error of a unary call", async () => {
    const { channel } = await connected((stream) => answer(stream, []));

    expect(await collect(channel.stream(echo, "", BOUNDS))).toEqual([]);
    await expect(channel.unary(echo, "", BOUNDS)).rejects.toMatchObject({ cause: { status: GrpcStatus.internal } });
  });

  test("in a stream returns its messages before it fails", async () => {
    const { channel } = await connected((stream) => {
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": 13, "grpc-message": "too late" }));
      stream.respond(HEADERS, { waitForTrailers: true });
      stream.end(Buffer.concat([framed("one"), framed("two")]));
    });
    const seen: string[] = [];

    const reading = (async () => {
      for await (const text of channel.stream(echo, "", BOUNDS)) seen.push(text);
    })();

    await expect(reading).rejects.toMatchObject({ cause: { status: 13, message: "too late" } });
    expect(seen).toEqual(["one", "two"]);
  });

  test("in a stream may be cancelled by its reader, and the server is notified", async () => {
    const left = Promise.withResolvers<void>();
    const { channel } = await connected((stream) => {
      stream.once("close", () => left.resolve());
      stream.respond(HEADERS);
      stream.write(framed("one"));
    });

    for await (const text of channel.stream(echo, "", BOUNDS)) {
      expect(text).toBe("one");
      break;
    }

    await left.promise;
  });
});

describe("a connection", () => {
  test("that cannot be opened fails every call that waits for it", async () => {
    const channel = channelTo("none.sock");

    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => channel.unary(echo, "", BOUNDS)));

    expect(outcomes.map((outcome) => outcome.status)).toEqual(Array(5).fill("rejected"));
  });

  test("is shared by calls, and replaced after GOAWAY", async () => {
    const { peer, channel } = await connected((stream, headers) => {
      answer(stream, ["hello"]);
      if (headers[":path"] === "/last") stream.session?.goaway();
    });

    await Promise.all([channel.unary(echo, "", BOUNDS), channel.unary(echo, "", BOUNDS)]);
    expect(peer.connections()).toBe(1);
    await channel.unary({ ...echo, path: "/last" }, "", BOUNDS);
    await expect(channel.unary(echo, "", BOUNDS)).resolves.toBe("hello");

    expect(peer.connections()).toBe(2);
  });

  test.each([
    ["stays", () => {}],
    ["has sent GOAWAY and stays", (stream: ServerHttp2Stream) => stream.session?.goaway()],
  ])("that is closed lets the process exit although the server %s", async (_what, onStream) => {
    await connected((stream) => {
      onStream(stream);
      answer(stream, [""]);
    });

    const program = join(import.meta.dirname, "fixtures/call-as.ts");
    const { stdout } = await execute(process.execPath, [program, place.socket("peer.sock"), `${process.getuid?.()}`]);

    expect(JSON.parse(stdout)).toEqual({ kind: "answered" });
  });

  test("is not opened for a call that was aborted before", async () => {
    const { peer, channel } = await connected((stream) => answer(stream, ["hello"]));

    const call = channel.unary(echo, "", { ...BOUNDS, signal: AbortSignal.abort() });

    await expect(call).rejects.toMatchObject({ cause: { status: GrpcStatus.cancelled } });
    expect(peer.connections()).toBe(0);
  });

  test("that closes ends its calls", async () => {
    const arrived = Promise.withResolvers<void>();
    const { channel } = await connected(() => arrived.resolve());
    const call = channel.unary(echo, "", BOUNDS);
    const failed = expect(call).rejects.toThrow();
    await arrived.promise;

    channel.close();

    await failed;
  });
});

describe("timeouts and signals", () => {
  test("leave no listener on the caller's signal", async () => {
    const { channel } = await connected((stream) => answer(stream, ["hello"]));
    const { signal } = new AbortController();

    await Promise.all(Array.from({ length: 20 }, () => channel.unary(echo, "", { ...BOUNDS, signal })));
    await collect(channel.stream(echo, "", { ...BOUNDS, signal }));

    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("a signal that times out is a timeout", async () => {
    const { channel } = await connected(() => {});

    const call = channel.unary(echo, "", { ...BOUNDS, signal: AbortSignal.timeout(20) });

    await expect(call).rejects.toMatchObject({ cause: { status: GrpcStatus.deadlineExceeded } });
  });

  test("end a running stream, with the reason", async () => {
    const { channel } = await connected((stream) => {
      stream.respond(HEADERS);
      stream.write(framed("one"));
    });

    const reading = collect(channel.stream(echo, "", { timeoutMs: 200 }));

    await expect(reading).rejects.toMatchObject({ cause: { status: GrpcStatus.deadlineExceeded } });
  });

  test.each([
    [0.2, "1m"],
    [1500.1, "1501m"],
    [100_000_000, "100000S"],
    [Number.POSITIVE_INFINITY, "99999999S"],
  ])("a timeout of %d ms is sent as %s", async (timeoutMs, header) => {
    const asked = Promise.withResolvers<unknown>();
    const { channel } = await connected((stream, headers) => {
      if (headers[":path"] === "/timed") asked.resolve(headers["grpc-timeout"]);
      answer(stream, ["hello"]);
    });
    // The shortest one passes before a connection is open.
    await channel.unary(echo, "", BOUNDS);

    const call = channel.unary({ ...echo, path: "/timed" }, "", { timeoutMs }).catch((error: unknown) => error);

    if (timeoutMs > 1000) expect(await call).toBe("hello");
    expect(await asked.promise).toBe(header);
  });
});

function matching(expected: object): object {
  return Object.fromEntries(
    Object.entries(expected).map(([key, value]) => [
      key,
      value instanceof RegExp ? expect.stringMatching(value) : value,
    ]),
  );
}

function framed(text: string): Uint8Array {
  return frame(echo.encode(text));
}

function answer(stream: ServerHttp2Stream, texts: readonly string[]): void {
  answerBytes(stream, Buffer.concat(texts.map(framed)));
}

function answerBytes(stream: ServerHttp2Stream, bytes: Uint8Array): void {
  stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
  stream.respond(HEADERS, { waitForTrailers: true });
  stream.end(bytes);
}

function refuse(stream: ServerHttp2Stream, status: number, message: string): void {
  stream.respond({ ...HEADERS, "grpc-status": status, "grpc-message": message }, { endStream: true });
}

function resetAfterMessage(stream: ServerHttp2Stream): void {
  stream.respond(HEADERS);
  stream.write(framed("hello"), () => stream.close(constants.NGHTTP2_CANCEL));
}

function withoutTrailers(stream: ServerHttp2Stream): void {
  stream.respond(HEADERS);
  stream.end(framed("hello"));
}

function halfMessage(stream: ServerHttp2Stream): void {
  answerBytes(stream, framed("hello").subarray(0, 7));
}

function nonsense(stream: ServerHttp2Stream): void {
  answerBytes(stream, frame(new Uint8Array([0xff, 0xfe])));
}
