import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeFrame, type Frame } from "../../../src/runtime/http2/frames.ts";
import { ErrorCode, Flag, FrameType } from "../../../src/runtime/http2/protocol.ts";
import { type Scripted, scripted } from "./scripted-connection.ts";
import {
  data,
  framesIn,
  goAway,
  headers,
  OK_HEADERS,
  OK_TRAILERS,
  PREFACE,
  reset,
  settings,
  trailers,
  windowUpdate,
} from "./scripted-peer.ts";

const MAX_STREAMS = 3;
const INITIAL_WINDOW = 4;
const MAX_FRAME = 5;
const MIB = 1024 * 1024;

let session: Scripted;

beforeEach(async () => {
  session = await scripted();
});

afterEach(() => session.close());

function isType(type: keyof typeof FrameType, streamId?: number): (frame: Frame) => boolean {
  return (frame) => frame.type === FrameType[type] && (streamId === undefined || frame.streamId === streamId);
}

function acknowledged(count: number): Promise<readonly Frame[]> {
  return session.peer.heard(count, isType("settings"));
}

function dataLengths(streamId: number): readonly number[] {
  return session.peer
    .frames()
    .filter(isType("data", streamId))
    .map(({ payload }) => payload.length);
}

describe("sent by a connection", () => {
  test("first: preface, SETTINGS and all frames of the same turn, in one write", async () => {
    for (let count = 0; count < 3; count++) session.request();
    await session.peer.heard(3, isType("data"));

    const [chunk = Buffer.alloc(0)] = session.peer.chunks;
    const runtimeInfo = framesIn(chunk.subarray(PREFACE.length));

    expect(session.peer.chunks).toHaveLength(1);
    expect(chunk.subarray(0, PREFACE.length).toString()).toBe(PREFACE);
    expect(runtimeInfo.map(({ type, streamId }) => [type, streamId])).toEqual([
      [FrameType.settings, 0],
      [FrameType.windowUpdate, 0],
      ...[1, 3, 5].flatMap((id) => [
        [FrameType.headers, id],
        [FrameType.data, id],
      ]),
    ]);
    expect(runtimeInfo[0]?.payload.toString("hex")).toBe("000100000000000200000000000400400000000600010000");
    expect(runtimeInfo[1]?.payload.readUInt32BE()).toBe(4 * MIB - 65_535);
  });

  test("an acknowledgement of SETTINGS and PING, and no answer to an acknowledgement", async () => {
    const ping = encodeFrame(FrameType.ping, Flag.none, 0, Buffer.from("12345678"));
    const answeredPing = encodeFrame(FrameType.ping, Flag.ack, 0, Buffer.from("87654321"));

    await session.peer.send(settings(), encodeFrame(FrameType.settings, Flag.ack, 0), answeredPing, ping);
    await session.peer.heard(1, isType("ping"));

    expect(session.peer.frames()).toEqual([
      { type: FrameType.settings, flags: Flag.ack, streamId: 0, payload: Buffer.alloc(0) },
      { type: FrameType.ping, flags: Flag.ack, streamId: 0, payload: Buffer.from("12345678") },
    ]);
  });
});

describe("request body", () => {
  test("waits for the window of its stream, however it changes", async () => {
    await session.peer.send(settings([INITIAL_WINDOW, 10]));
    await acknowledged(1);
    session.request(100);
    await session.peer.heard(1, isType("data"));

    await session.peer.send(settings([INITIAL_WINDOW, 30]));
    await session.peer.heard(2, isType("data"));
    // The window is -20: only what exceeds that can be sent.
    await session.peer.send(settings([INITIAL_WINDOW, 10]), windowUpdate(1, 20));
    await acknowledged(3);
    expect(dataLengths(1)).toEqual([10, 20]);
    await session.peer.send(windowUpdate(1, 5), windowUpdate(1, 1000));
    const parts = await session.peer.heard(4, isType("data"));

    expect(dataLengths(1)).toEqual([10, 20, 5, 65]);
    expect(parts.map(({ flags }) => flags)).toEqual([0, 0, 0, Flag.endStream]);
  });

  test("waits for the window of the connection, together with others", async () => {
    await session.peer.send(settings([INITIAL_WINDOW, MIB], [MAX_FRAME, 50_000]));
    await acknowledged(1);
    session.request(70_000);
    session.request(10);
    await session.peer.heard(2, isType("data"));
    expect([dataLengths(1), dataLengths(3)]).toEqual([[50_000, 15_535], []]);

    await session.peer.send(windowUpdate(0, 70_000 - 65_535), windowUpdate(0, 10));
    await session.peer.heard(1, isType("data", 3));

    expect([dataLengths(1), dataLengths(3)]).toEqual([[50_000, 15_535, 4465], [10]]);
  });

  test("is not sent to its end when the server does not need it", async () => {
    const { answer } = session.request(100_000);

    await session.peer.send(settings(), headers(1), trailers(1), windowUpdate(0, 100_000));
    const [given] = await session.peer.heard(1, isType("rstStream"));

    expect(await answer.ended).toEqual({ kind: "complete" });
    expect(given?.payload.readUInt32BE()).toBe(ErrorCode.noError);
    expect(dataLengths(1).reduce((sum, length) => sum + length)).toBe(65_535);
  });
});

describe("response", () => {
  const head = Buffer.concat([Buffer.from([3]), Buffer.from([0x80, 0, 0, 0, 7]), OK_HEADERS, Buffer.alloc(3)]);
  const whole = Buffer.concat([
    settings(),
    headers(1, head, Flag.padded | Flag.priority),
    encodeFrame(FrameType.continuation, Flag.none, 1, Buffer.from([0x00, 1, 0x61])),
    encodeFrame(FrameType.continuation, Flag.none, 1),
    encodeFrame(FrameType.continuation, Flag.endHeaders, 1, Buffer.from([1, 0x62])),
    data(1, Buffer.from("\x02hello  "), Flag.padded),
    encodeFrame(0x42, 0xff, 1, Buffer.from("who knows")),
    data(1, Buffer.from(" world")),
    headers(1, OK_TRAILERS, Flag.endHeaders | Flag.endStream),
  ]);
  const expected = {
    headers: [
      new Map([
        [":status", "200"],
        ["a", "b"],
      ]),
      new Map([["grpc-status", "0"]]),
    ],
    text: "hello world",
  };

  async function answerIn(parts: readonly Uint8Array[]): Promise<unknown> {
    const one = await scripted();
    const { answer } = one.request();
    await one.peer.send(...parts);
    expect(await answer.ended).toEqual({ kind: "complete" });
    await one.close();
    return { headers: answer.headers, text: answer.bytes.toString() };
  }

  test("is the same wherever it is cut", async () => {
    for (let at = 0; at < whole.length; at++) {
      expect(await answerIn([whole.subarray(0, at), whole.subarray(at)]), `cut at ${at}`).toEqual(expected);
    }
  });

  test("is the same byte by byte", async () => {
    expect(await answerIn([...whole].map((byte) => Buffer.from([byte])))).toEqual(expected);
  });

  test("that is not read gets no more window, while the connection continues", async () => {
    const { answer, stream } = session.request();
    const padding = Buffer.concat([Buffer.from([100]), Buffer.alloc(16_383)]);

    await session.peer.send(
      settings(),
      headers(1),
      ...Array.from({ length: 200 }, () => data(1, padding, Flag.padded)),
    );
    const [forAll] = await session.peer.heard(1, isType("windowUpdate"));
    expect([forAll?.streamId, forAll?.payload.readUInt32BE()]).toEqual([0, 2 * MIB]);
    session.connection.consumed(stream, answer.bytes.length);
    const updates = await session.peer.heard(2, isType("windowUpdate"));

    expect(updates.map(({ streamId, payload }) => [streamId, payload.readUInt32BE()])).toEqual([
      [0, 2 * MIB],
      [1, 200 * 16_384],
    ]);
  });

  test("that arrives after its call was aborted is ignored, and counts for the connection", async () => {
    const { answer, stream } = session.request();
    const { answer: other } = session.request();
    await session.peer.send(settings(), headers(1));

    session.connection.cancel(stream);
    const [given] = await session.peer.heard(1, isType("rstStream"));
    const late = Array.from({ length: (2 * MIB) / 16_384 }, () => data(1, 16_384));
    await session.peer.send(...late, trailers(1), reset(1, 0), windowUpdate(1, 1), headers(3), trailers(3));

    expect([given?.streamId, given?.payload.readUInt32BE()]).toEqual([1, ErrorCode.cancel]);
    expect(await other.ended).toEqual({ kind: "complete" });
    const updates = await session.peer.heard(1, isType("windowUpdate"));
    expect(updates.map(({ streamId, payload }) => [streamId, payload.readUInt32BE()])).toEqual([[0, 2 * MIB]]);
    expect(answer.chunks).toEqual([]);
  });
});

describe("a server with a limit of concurrent streams", () => {
  test("gets the next call when one has ended, and none that was aborted before", async () => {
    await session.peer.send(settings([MAX_STREAMS, 1]));
    await acknowledged(1);
    const { answer: first } = session.request();
    const { stream: second } = session.request();
    const { answer: third } = session.request();
    session.connection.cancel(second);

    await session.peer.send(headers(1), trailers(1));
    await first.ended;
    await session.peer.heard(1, isType("headers", 3));
    await session.peer.send(headers(3), trailers(3));
    await third.ended;

    expect(session.peer.frames().filter(isType("headers"))).toHaveLength(2);
    expect(session.peer.frames().filter(isType("rstStream"))).toEqual([]);
  });

  test("that refuses earlier streams gets them again, from the start", async () => {
    const answers = [session.request().answer, session.request(100_000).answer];
    await session.peer.heard(4, isType("data", 3));
    const sentBefore = dataLengths(3);

    await session.peer.send(settings([MAX_STREAMS, 1]), reset(3, ErrorCode.refusedStream), windowUpdate(0, 200_000));
    await session.peer.send(headers(1), trailers(1));
    await session.peer.heard(1, isType("data", 5));
    await session.peer.send(windowUpdate(5, 200_000));
    await session.peer.heard(1, ({ streamId, flags }) => streamId === 5 && flags === Flag.endStream);
    await session.peer.send(headers(5), trailers(5));

    for (const answer of answers) expect(await answer.ended).toEqual({ kind: "complete" });
    expect(dataLengths(3)).toEqual(sentBefore);
    expect(dataLengths(5).reduce((sum, length) => sum + length)).toBe(100_000);
  });

  test("that refuses a stream within its limit fails the call", async () => {
    await session.peer.send(settings());
    await acknowledged(1);
    const { answer } = session.request();

    await session.peer.send(reset(1, ErrorCode.refusedStream));

    expect(await answer.ended).toEqual({ kind: "reset", errorCode: ErrorCode.refusedStream });
  });
});

describe("end of a connection", () => {
  test("by GOAWAY lets the server finish started streams", async () => {
    const { answer: first } = session.request();
    const { answer: second } = session.request();

    await session.peer.send(settings(), goAway(1, ErrorCode.enhanceYourCalm));
    expect(await second.ended).toMatchObject({ kind: "lost", cause: { message: expect.stringContaining("11") } });
    expect(session.connection.takesRequests).toBe(false);
    await session.peer.send(headers(1), data(1, 3), trailers(1));

    expect(await first.ended).toEqual({ kind: "complete" });
    await session.peer.hungUp;
  });

  test("by GOAWAY does not start queued calls", async () => {
    await session.peer.send(settings([MAX_STREAMS, 2]));
    await acknowledged(1);
    const [first, second, waiting] = Array.from({ length: 3 }, () => session.request().answer);

    await session.peer.send(goAway(1));
    expect(await second?.ended).toMatchObject({ kind: "lost" });
    expect(await waiting?.ended).toMatchObject({ kind: "lost" });
    await session.peer.send(headers(1), trailers(1));

    expect(await first?.ended).toEqual({ kind: "complete" });
    expect(session.peer.frames().filter(isType("headers"))).toHaveLength(2);
  });

  test("by exhausted stream ids finishes the last calls and closes", async () => {
    const last = await scripted(2 ** 31 - 3);
    const answers = [last.request().answer];
    expect(last.connection.takesRequests).toBe(true);
    answers.push(last.request().answer);
    expect(last.connection.takesRequests).toBe(false);

    await last.peer.send(settings());
    for (const id of [2 ** 31 - 3, 2 ** 31 - 1]) await last.peer.send(headers(id), trailers(id));

    for (const answer of answers) expect(await answer.ended).toEqual({ kind: "complete" });
    await last.peer.hungUp;
    await last.close();
  });

  test("by exhausted stream ids reserves one for each queued call", async () => {
    const last = await scripted(2 ** 31 - 5);
    await last.peer.send(settings([MAX_STREAMS, 1]));
    await last.peer.heard(1, isType("settings"));
    const answers = Array.from({ length: 3 }, () => last.request().answer);
    expect(last.connection.takesRequests).toBe(false);

    for (const [index, answer] of answers.entries()) {
      const id = 2 ** 31 - 5 + 2 * index;
      await last.peer.heard(1, isType("data", id));
      await last.peer.send(headers(id), trailers(id));
      expect(await answer.ended).toEqual({ kind: "complete" });
    }

    await last.peer.hungUp;
    await last.close();
  });

  test("by close() ends everything at once", async () => {
    const { answer } = session.request();
    await session.peer.send(settings([MAX_STREAMS, 1]));
    await acknowledged(1);
    const { answer: waiting } = session.request();

    session.connection.close();

    expect(await answer.ended).toEqual({ kind: "lost" });
    expect(await waiting.ended).toEqual({ kind: "lost" });
    await session.peer.hungUp;
  });
});
