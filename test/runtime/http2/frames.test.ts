import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  encodeFrame,
  encodeNumberFrame,
  type Frame,
  FrameReader,
  withoutPadding,
} from "../../../src/runtime/http2/frames.ts";
import { ErrorCode, Flag, FrameType, LARGEST_31_BITS } from "../../../src/runtime/http2/protocol.ts";

const frames = fc.array(
  fc.record({
    type: fc.nat(255),
    flags: fc.nat(255),
    streamId: fc.nat(LARGEST_31_BITS),
    payload: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  }),
  { maxLength: 8 },
);

describe("frames", () => {
  test("are written as in RFC 9113", () => {
    const bytes = encodeFrame(FrameType.headers, Flag.endHeaders, 0x01020304, Buffer.from("abc"));

    expect(bytes.toString("hex")).toBe("000003010401020304616263");
    expect(encodeNumberFrame(FrameType.windowUpdate, 1, 0x7fffffff).toString("hex")).toBe("0000040800000000017fffffff");
  });

  test("are the same however they are cut into chunks", () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(), { maxLength: 20 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(encoded));
        const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
        const reader = new FrameReader();
        const received: Frame[] = [];

        for (const [index, end] of ends.entries()) {
          reader.push(bytes.subarray(ends[index - 1] ?? 0, end), (frame) => received.push(frame));
        }

        expect(received).toEqual(sent);
      }),
    );
  });

  test("ignore the reserved bit of the stream id", () => {
    const received = read(encodeFrame(FrameType.ping, Flag.none, 0x80000005));

    expect(received).toMatchObject([{ streamId: 5 }]);
  });

  test("that are too long are refused by their header, after those before them", () => {
    const received: Frame[] = [];
    const tooLong = encodeFrame(FrameType.data, Flag.none, 1, Buffer.alloc(16_385)).subarray(0, 9);
    const bytes = Buffer.concat([encodeFrame(FrameType.data, Flag.none, 1, Buffer.alloc(16_384)), tooLong]);

    expect(() => new FrameReader().push(bytes, (frame) => received.push(frame))).toThrow(
      expect.objectContaining({ errorCode: ErrorCode.frameSizeError }),
    );
    expect(received).toHaveLength(1);
  });
});

describe("padding", () => {
  test.each([
    ["is removed", Flag.padded, "02616200ff", "6162"],
    ["may be the whole payload", Flag.padded, "020000", ""],
    ["may be empty", Flag.padded, "0061", "61"],
    ["is not expected without the flag", Flag.none, "0261", "0261"],
  ])("%s", (_what, flags, payload, left) => {
    expect(withoutPadding(frameOf(flags, payload)).toString("hex")).toBe(left);
  });

  test.each(["", "01", "0361ff"])("longer than its frame is refused (%s)", (payload) => {
    expect(() => withoutPadding(frameOf(Flag.padded, payload))).toThrow("more padding");
  });
});

function frameOf(flags: number, payload: string): Frame {
  return { type: FrameType.data, flags, streamId: 1, payload: Buffer.from(payload, "hex") };
}

function encoded({ type, flags, streamId, payload }: Frame): Buffer {
  return encodeFrame(type, flags, streamId, payload);
}

function read(bytes: Buffer): Frame[] {
  const received: Frame[] = [];
  new FrameReader().push(bytes, (frame) => received.push(frame));
  return received;
}
