import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BoltBucket, MAX_DAMAGE, readBolt } from "../../../src/node/bolt/read-bolt.ts";
import { neededRecords, storedRecords } from "../../../src/node/metadata.ts";
import { bytesAsSource } from "../../support/bytes-source.ts";
import { metaBytes, type Tree, writeBolt } from "./write-bolt.ts";

const PAGE = 1024;
const sound = writeBolt(
  {
    v1: {
      "k8s.io": Object.fromEntries(
        ["containers", "sandboxes", "leases"].map((store) => [
          store,
          Object.fromEntries(
            Array.from({ length: 40 }, (_, index) => [
              `id-${index}`,
              {
                createdat: Uint8Array.from([1, 0, 0, 0, 14, 226, 47, 240, 35, 0, 0, 0, 0, 255, 255]),
                labels: { "io.cri-containerd.kind": "sandbox" },
                extensions: { metadata: `\n\u0001x\u0012\u0002{}` },
                spec: "s".repeat(index * 50),
              },
            ]),
          ),
        ]),
      ),
    },
  },
  { pageSize: PAGE },
);

/** Counts the bytes read, so that growth is measured in bytes instead of time. */
function readCounted(bytes: Uint8Array) {
  const inner = bytesAsSource(bytes);
  let bytesRead = 0;
  const source = {
    size: inner.size,
    read: (offset: number, length: number) => {
      bytesRead += length;
      if (offset < 0 || offset + length > inner.size) throw new Error(`asked for ${length} bytes at ${offset}`);
      return inner.read(offset, length);
    },
  };
  const reading = readBolt(source, () => true);
  return { ...reading, bytesRead };
}

function keptBytes({ values, buckets }: BoltBucket): number {
  let sum = 0;
  for (const value of values.values()) sum += value.length;
  for (const bucket of buckets.values()) sum += keptBytes(bucket);
  return sum;
}

/** For any bytes: it ends, never throws, reads each page at most twice and keeps no more than there is. */
function expectBounded(bytes: Uint8Array): void {
  const { root, damage, bytesRead } = readCounted(bytes);
  const metaSearch = 64 * 20;
  expect(bytesRead).toBeLessThanOrEqual(2 * bytes.length + metaSearch);
  expect(keptBytes(root)).toBeLessThanOrEqual(bytes.length);
  expect(damage.length).toBeLessThanOrEqual(MAX_DAMAGE);
  const { records } = storedRecords(readBolt(bytesAsSource(bytes), neededRecords).root);
  expect(records.length).toBeLessThanOrEqual(bytes.length);
}

describe("reader on arbitrary bytes", () => {
  test("handles random bytes", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 8192 }), expectBounded));
  });

  test("handles random bytes behind valid meta pages", () => {
    const body = fc.uint8Array({ minLength: 2 * PAGE, maxLength: 16 * PAGE, size: "max" });
    const meta = fc.record({ root: fc.nat(20), highWater: fc.oneof(fc.nat(20), fc.maxSafeNat()) });
    fc.assert(
      fc.property(body, meta, fc.integer({ min: 0, max: 20 }), (bytes, fields, kinds) => {
        const file = Buffer.from(bytes);
        // Valid headers, so that the content behind them is reached.
        for (let page = 0; (page + 1) * PAGE <= file.length; page += 1) {
          file.writeBigUInt64LE(BigInt(page), page * PAGE);
          file.writeUInt16LE((page + kinds) % 3 === 0 ? 2 : 1, page * PAGE + 8);
          file.writeUInt32LE(file.readUInt32LE(page * PAGE + 12) % 3, page * PAGE + 12);
          file.writeUInt16LE(file.readUInt16LE(page * PAGE + 10) % 70, page * PAGE + 10);
        }
        metaBytes({ pageSize: PAGE, ...fields, transaction: 1n }).copy(file, 16);
        expectBounded(file);
      }),
    );
  });

  test("handles a valid file with flipped bits", () => {
    const flips = fc.array(fc.nat(sound.length * 8 - 1), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(flips, (bits) => {
        const copy = Buffer.from(sound);
        for (const bit of bits) copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expectBounded(copy);
      }),
      { numRuns: 500 },
    );
  });

  test("handles a valid file with absurd numbers", () => {
    const edit = fc.record({
      at: fc.nat(sound.length / 4 - 1),
      value: fc.constantFrom(0, 1, 2, 3, 4, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff),
    });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 30 }), (edits) => {
        const copy = Buffer.from(sound);
        for (const { at, value } of edits) copy.writeUInt32LE(value, at * 4);
        expectBounded(copy);
      }),
      { numRuns: 500 },
    );
  });

  test("always detects a truncated file", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: sound.length }), (missing) => {
        const cut = sound.subarray(0, sound.length - missing);
        expectBounded(cut);
        expect(readCounted(cut).damage).not.toEqual([]);
      }),
    );
  });
});

describe("reader on valid files", () => {
  const key = fc.string({ minLength: 1, maxLength: 30 });
  const value = fc.oneof(fc.string({ maxLength: 50 }), fc.string({ minLength: 500, maxLength: 3000, size: "max" }));
  const tree = fc.letrec<{ tree: Tree }>((tie) => ({
    tree: fc.dictionary(key, fc.oneof({ depthSize: "small" }, value, tie("tree")), { maxKeys: 15 }),
  })).tree;

  test("reads everything back, without damage and each page once", () => {
    fc.assert(
      fc.property(tree, (written) => {
        const bytes = writeBolt(written, { pageSize: PAGE });
        const { root, damage, bytesRead } = readCounted(bytes);
        expect(damage).toEqual([]);
        expect(plain(root)).toEqual(normalised(written));
        expect(bytesRead).toBeLessThanOrEqual(2 * bytes.length);
      }),
    );
  });

  test("reads twice as many bytes for twice as much data", () => {
    const records = (count: number) =>
      writeBolt(
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`${index}`, { spec: "x".repeat(900) }])),
      );
    const [one, two] = [readCounted(records(500)).bytesRead, readCounted(records(1000)).bytesRead];
    expect(two / one).toBeGreaterThan(1.9);
    expect(two / one).toBeLessThan(2.1);
  });
});

type Plain = ReadonlyMap<string, string | Plain>;

function plain({ values, buckets }: BoltBucket): Plain {
  const texts = [...values].map(([name, bytes]) => [name, Buffer.from(bytes).toString()] as const);
  return new Map<string, string | Plain>([...texts, ...[...buckets].map(([name, one]) => [name, plain(one)] as const)]);
}

function normalised(tree: Tree): Plain {
  return new Map(
    Object.entries(tree).map(([name, one]) => [
      Buffer.from(name).toString(),
      typeof one === "string" || one instanceof Uint8Array ? Buffer.from(one).toString() : normalised(one),
    ]),
  );
}
