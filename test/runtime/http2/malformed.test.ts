import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeFrame } from "../../../src/runtime/http2/frames.ts";
import { ErrorCode, Flag, FrameType, ProtocolError } from "../../../src/runtime/http2/protocol.ts";
import { type Scripted, scripted } from "./scripted-connection.ts";
import { data, goAway, headers, reset, settings, windowUpdate } from "./scripted-peer.ts";

let session: Scripted;

beforeEach(async () => {
  session = await scripted();
});

afterEach(() => session.close());

const { compressionError, enhanceYourCalm, flowControlError, frameSizeError, protocolError } = ErrorCode;
const { none, ack, endStream, endHeaders, padded, priority } = Flag;

function frame(type: keyof typeof FrameType, streamId: number, payload: string | number = "", flags: number = none) {
  const bytes = typeof payload === "number" ? Buffer.alloc(payload) : Buffer.from(payload, "hex");
  return encodeFrame(FrameType[type], flags, streamId, bytes);
}

/** Sent after SETTINGS, while the request on stream 1 waits for its answer. */
const BREACHES: readonly [what: string, bytes: readonly Uint8Array[], errorCode: number][] = [
  ["a frame longer than allowed", [frame("data", 1, 16_385)], frameSizeError],
  ["DATA about the connection", [data(0, 1)], protocolError],
  ["HEADERS about the connection", [headers(0)], protocolError],
  ["RST_STREAM about the connection", [reset(0, 0)], protocolError],
  ["SETTINGS about a stream", [frame("settings", 1)], protocolError],
  ["PING about a stream", [frame("ping", 1, 8)], protocolError],
  ["GOAWAY about a stream", [frame("goAway", 1, 8)], protocolError],
  ["SETTINGS cut off", [frame("settings", 0, 5)], frameSizeError],
  ["an acknowledgement with a payload", [frame("settings", 0, 6, ack)], frameSizeError],
  ["PING cut off", [frame("ping", 0, 7)], frameSizeError],
  ["RST_STREAM cut off", [frame("rstStream", 1, 3)], frameSizeError],
  ["WINDOW_UPDATE too long", [frame("windowUpdate", 0, 5)], frameSizeError],
  ["PRIORITY cut off", [frame("priority", 1, 4)], frameSizeError],
  ["GOAWAY cut off", [frame("goAway", 0, 7)], frameSizeError],
  ["a window increment of 0", [windowUpdate(0, 0)], protocolError],
  ["a stream's window increment of 0", [windowUpdate(1, 0)], protocolError],
  ["a window too large", [windowUpdate(0, 2 ** 31 - 1)], flowControlError],
  ["a stream's window too large", [windowUpdate(1, 2 ** 31 - 1)], flowControlError],
  ["windows too large by setting", [settings([4, 2 ** 31])], flowControlError],
  ["windows that become too large", [windowUpdate(1, 2 ** 30), settings([4, 2 ** 31 - 1])], flowControlError],
  ["frames too small by setting", [settings([5, 16_383])], protocolError],
  ["frames too large by setting", [settings([5, 2 ** 24])], protocolError],
  ["a push", [frame("pushPromise", 1, 5)], protocolError],
  ["a stream opened by the server", [headers(2)], protocolError],
  ["an answer without a request", [headers(3)], protocolError],
  ["a window update without a request", [windowUpdate(3, 1)], protocolError],
  ["DATA before the headers", [data(1, 1)], protocolError],
  ["headers without a status", [headers(1, Buffer.from("0001610162", "hex"))], protocolError],
  ["headers within the answer", [headers(1), headers(1)], protocolError],
  ["a header of the dynamic table", [headers(1, Buffer.from([0xbe]))], compressionError],
  ["a dynamic table", [headers(1, Buffer.from([0x3f, 0xe1, 0x1f, 0x88]))], compressionError],
  ["headers with too much padding", [frame("headers", 1, "0288", endHeaders | padded)], protocolError],
  ["headers with half a priority", [frame("headers", 1, "00000000", endHeaders | priority)], frameSizeError],
  ["DATA with too much padding", [headers(1), frame("data", 1, "0561", padded)], protocolError],
  ["CONTINUATION without HEADERS", [frame("continuation", 1, "88", endHeaders)], protocolError],
  ["HEADERS without CONTINUATION", [headers(1, Buffer.from([0x88]), none), windowUpdate(0, 1)], protocolError],
  ["HEADERS before the end of a header block", [headers(1, Buffer.from([0x88]), none), headers(1)], protocolError],
  [
    "headers that go on for another stream",
    [headers(1, Buffer.from([0x88]), none), frame("continuation", 3, "", endHeaders)],
    protocolError,
  ],
  [
    "an unknown frame within a header block",
    [headers(1, Buffer.from([0x88]), none), encodeFrame(0x42, none, 1)],
    protocolError,
  ],
  [
    "headers without an end",
    [headers(1, Buffer.alloc(16_384), none), ...Array.from({ length: 4 }, () => frame("continuation", 1, 16_384))],
    enhanceYourCalm,
  ],
];

describe("a server that breaks the protocol", () => {
  test.each(BREACHES)("by %s gets the error code, and so does every call", async (_what, bytes, errorCode) => {
    const { answer: first } = session.request();
    await session.peer.send(settings());
    await session.peer.heard(1, ({ type }) => type === FrameType.settings);

    await session.peer.send(...bytes);
    const end = await first.ended;

    expect(end).toMatchObject({ kind: "failed", error: expect.any(ProtocolError) });
    expect(session.connection.takesRequests).toBe(false);
    const [goodbye] = await session.peer.heard(1, ({ type }) => type === FrameType.goAway);
    expect(goodbye?.payload.readUInt32BE(4)).toBe(errorCode);
    await session.peer.hungUp;
  });

  test.each([
    ["another frame", headers(1)],
    ["an acknowledgement", frame("settings", 0, "", ack)],
    ["an unknown frame", encodeFrame(0x42, none, 0)],
    ["GOAWAY", goAway(0)],
    ["a line of HTTP/1", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ])("with its first frame, %s, gets the error code", async (_what, bytes) => {
    const { answer } = session.request();

    await session.peer.send(bytes);

    expect(await answer.ended).toMatchObject({ kind: "failed", error: expect.any(ProtocolError) });
    await session.peer.hungUp;
  });

  test("by sending more than the window gets the error code", async () => {
    const { answer } = session.request();
    const window = 4 * 1024 * 1024;
    const full = Buffer.concat(Array.from({ length: window / 16_384 }, () => data(1, 16_384)));

    await session.peer.send(settings(), headers(1), full, data(1, 1));

    expect(await answer.ended).toMatchObject({ kind: "failed", error: { errorCode: flowControlError } });
    expect(answer.bytes).toHaveLength(window);
  });
});

describe("unusual but valid frames", () => {
  test("do not end a connection", async () => {
    const { answer } = session.request();

    await session.peer.send(
      settings([0x99, 1], [1, 0], [2, 0], [6, 100]),
      encodeFrame(0x42, 0xff, 0, Buffer.alloc(10)),
      encodeFrame(0x42, 0xff, 77, Buffer.alloc(10)),
      frame("priority", 9, 5),
      frame("ping", 0, 8, ack),
      headers(1, Buffer.from("08033130330001610162", "hex")),
      headers(1),
      data(1, 0),
      data(1, Buffer.from("hello"), endStream),
    );

    expect(await answer.ended).toEqual({ kind: "complete" });
    expect(answer.headers).toEqual([new Map([[":status", "200"]])]);
    expect(answer.bytes.toString()).toBe("hello");
  });
});
