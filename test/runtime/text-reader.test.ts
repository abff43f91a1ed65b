import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TextReader } from "../../src/runtime/call.ts";

describe("text in a message", () => {
  test("is read as the library reads it, wherever the message lies in its buffer", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 200 })), fc.nat(20), (texts, offset) => {
        const writer = new BinaryWriter();
        for (const text of texts) writer.string(text);
        const message = writer.finish();
        const within = new Uint8Array(offset + message.length).subarray(offset);
        within.set(message);
        const [ours, theirs] = [new TextReader(within), new BinaryReader(within)];
        for (const _ of texts) expect(ours.string()).toBe(theirs.string());
        expect(ours.pos).toBe(within.length);
      }),
    );
  });

  test("that is no UTF-8 is read with signs in its place, as the library does", () => {
    const bytes = new BinaryWriter().bytes(Uint8Array.of(0x61, 0xff, 0xc3, 0x62)).finish();
    expect(new TextReader(bytes).string()).toBe(new BinaryReader(bytes).string());
  });

  test("that ends beyond the message is refused", () => {
    expect(() => new TextReader(Uint8Array.of(5, 0x61)).string()).toThrow(RangeError);
  });
});
