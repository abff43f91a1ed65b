import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ListPodSandboxResponse } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { TextReader } from "../../src/runtime/grpc.ts";

describe("strings in a message", () => {
  test("are decoded like the library does, at any offset in the buffer", () => {
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

  test("with invalid UTF-8 get replacement characters, like in the library", () => {
    const bytes = new BinaryWriter().bytes(Uint8Array.of(0x61, 0xff, 0xc3, 0x62)).finish();
    expect(new TextReader(bytes).string()).toBe(new BinaryReader(bytes).string());
  });

  test("that end beyond the message are refused", () => {
    expect(() => new TextReader(Uint8Array.of(5, 0x61)).string()).toThrow(RangeError);
  });
});

test("each message within a message is reported, so that their number can be limited", () => {
  const labels = { a: "1", b: "2" };
  const items = [
    { id: "1", labels },
    { id: "2", labels, metadata: { name: "p" } },
  ];
  const bytes = ListPodSandboxResponse.encode(ListPodSandboxResponse.fromPartial({ items })).finish();
  let objects = 0;

  ListPodSandboxResponse.decode(
    new TextReader(bytes, () => {
      objects += 1;
    }),
  );

  // The answer, two sandboxes, two labels each, the metadata of one.
  expect(objects).toBe(8);
});
