import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GrpcStatus } from "../../src/runtime/errors.ts";
import { frame, MAX_MESSAGE_BYTES, MessageReader } from "../../src/runtime/grpc.ts";

const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 });
const cuts = fc.array(fc.nat(), { maxLength: 20 });

describe("messages", () => {
  test("are the same however they are cut into chunks", () => {
    fc.assert(
      fc.property(messages, cuts, (sent, at) => {
        const reader = new MessageReader();

        const received = cutAt(Buffer.concat(sent.map(frame)), at).flatMap((chunk) => reader.push(chunk));
        reader.end();

        expect(received.map((bytes) => [...bytes])).toEqual(sent.map((bytes) => [...bytes]));
      }),
    );
  });

  test("that are truncated are detected, after those before them", () => {
    fc.assert(
      fc.property(messages, cuts, fc.uint8Array({ maxLength: 40 }), fc.nat(), (sent, at, last, kept) => {
        const cutOff = frame(last);
        const bytes = Buffer.concat([...sent.map(frame), cutOff.subarray(0, 1 + (kept % (cutOff.length - 1)))]);
        const reader = new MessageReader();

        const received = cutAt(bytes, at).flatMap((chunk) => reader.push(chunk));

        expect(received).toHaveLength(sent.length);
        expect(() => reader.end()).toThrow("in the middle of a message");
      }),
    );
  });
});

describe("header", () => {
  test.each([
    ["one byte too long", MAX_MESSAGE_BYTES + 1],
    ["of the maximum length", 2 ** 32 - 1],
  ])("of a message %s is refused before the message arrives", (_what, length) => {
    const reader = new MessageReader();

    expect(() => reader.push(header(0, length))).toThrow(
      expect.objectContaining({ status: GrpcStatus.resourceExhausted, message: expect.stringContaining(`${length}`) }),
    );
  });

  test("of the longest allowed message is accepted", () => {
    expect(new MessageReader().push(header(0, MAX_MESSAGE_BYTES))).toEqual([]);
  });

  test("with compression is refused, because none was requested", () => {
    expect(() => new MessageReader().push(header(1, 0))).toThrow(
      expect.objectContaining({ status: GrpcStatus.internal }),
    );
  });
});

function header(flag: number, length: number): Uint8Array {
  const bytes = Buffer.alloc(5);
  bytes.writeUInt8(flag);
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

function cutAt(bytes: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const ends = [...positions.map((position) => position % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}
