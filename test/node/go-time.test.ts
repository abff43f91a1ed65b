import { BinaryWriter } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseGoTime } from "../../src/node/metadata.ts";
import { Container } from "../../src/runtime/gen/containerd/containers.ts";
import { Timestamp } from "../../src/runtime/gen/google/protobuf/timestamp.ts";
import { goTime } from "./metadata-tree.ts";

test("reads a time with milliseconds", () => {
  fc.assert(
    fc.property(fc.date({ min: new Date(0), max: new Date("2200-01-01"), noInvalidDate: true }), (date) => {
      expect(parseGoTime(goTime(date))).toEqual(date);
    }),
  );
});

test.each<readonly [string, readonly number[], Date | undefined]>([
  ["Go's zero time", [1, ...Array<number>(12).fill(0), 255, 255], new Date("0001-01-01T00:00:00Z")],
  ["the second version", [2, 0, 0, 0, 14, 119, 145, 247, 0, 0, 0, 0, 0, 0, 60, 7], new Date("1970-01-01T00:00:00Z")],
  ["a third version", [3, ...Array<number>(14).fill(0)], undefined],
  ["a truncated one", [1, 0, 0, 0], undefined],
  ["a time out of range", [1, 127, ...Array<number>(13).fill(255)], undefined],
  ["nothing", [], undefined],
])("%s", (_, bytes, expected) => {
  expect(parseGoTime(Uint8Array.from(bytes))).toEqual(expected);
});

test("any bytes give a valid date or undefined", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 20 }), (bytes) => {
      const time = parseGoTime(bytes);
      expect(Number.isNaN(time?.getTime())).toBe(false);
    }),
  );
});

const CREATED_AT = (8 << 3) | 2;

/** The same time in a message of containerd, and in its database. */
function bothWays(seconds: number, nanos: number): readonly (Date | undefined)[] {
  const timestamp = Timestamp.encode({ seconds: BigInt(seconds), nanos }).finish();
  const message = new BinaryWriter().uint32(CREATED_AT).bytes(timestamp).finish();
  const stored = Buffer.from(goTime(new Date(seconds * 1000)));
  stored.writeInt32BE(nanos, 9);
  return [Container.decode(message).createdAt, parseGoTime(stored)];
}

test("the same moment is equal from the database and from a message, to the nanosecond", () => {
  const nearTheNextMillisecond = fc.nat(999).map((ms) => ms * 1_000_000 + 999_999);
  const nanos = fc.oneof(fc.nat(999_999_999), nearTheNextMillisecond);
  fc.assert(
    fc.property(fc.integer({ min: 1_500_000_000, max: 3_000_000_000 }), nanos, (seconds, rest) => {
      const [printed, stored] = bothWays(seconds, rest);
      expect(stored).toEqual(printed);
    }),
  );
});
