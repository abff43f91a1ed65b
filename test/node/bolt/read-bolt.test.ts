import { describe, expect, test } from "vitest";
import { type BoltBucket, readBolt } from "../../../src/node/bolt/read-bolt.ts";
import { bytesAsSource } from "../../support/bytes-source.ts";
import { metaBytes, type Tree, writeBolt } from "./write-bolt.ts";

const PAGE = 4096;

function read(bytes: Uint8Array) {
  const { root, damage } = readBolt(bytesAsSource(bytes), () => true);
  return { tree: treeOf(root), damage: damage.map(({ page, reason }) => `page ${page} ${reason}`) };
}

function treeOf({ values, buckets }: BoltBucket): Tree {
  const texts = [...values].map(([key, value]) => [key, Buffer.from(value).toString()] as const);
  return Object.fromEntries<Tree[string]>([...texts, ...[...buckets].map(([key, one]) => [key, treeOf(one)] as const)]);
}

function numbered(count: number, value: (index: number) => Tree[string]): Tree {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`key-${index}`, value(index)]));
}

describe("a valid file", () => {
  test.each<readonly [string, Tree]>([
    ["nothing", {}],
    ["values", { a: "1", b: "2", empty: "" }],
    ["a small bucket inside a page", { outer: { a: "1", b: "2" } }],
    ["an empty bucket", { outer: {} }],
    ["buckets in buckets", { a: { b: { c: { d: { e: "deep" } } } } }],
    ["a value of many pages", { big: "x".repeat(50_000), small: "y" }],
    ["a bucket of many leaves", { many: numbered(1000, (index) => `value ${index}`) }],
    ["branches of branches", numbered(5000, (index) => `${index}`.repeat(100))],
    ["many buckets", numbered(300, (index) => ({ labels: { index: String(index) }, spec: "s".repeat(3000) }))],
    ["keys that are JavaScript property names", JSON.parse('{"__proto__": {"constructor": "x"}, "toString": "y"}')],
  ])("with %s is read completely", (_, tree) => {
    expect(read(writeBolt(tree, { free: 3 }))).toEqual({ tree, damage: [] });
  });

  test.each([1024, 4096, 16_384, 65_536])("may have pages of %d bytes", (pageSize) => {
    const tree = numbered(200, (index) => ({ index: String(index), fill: "f".repeat(500) }));
    expect(read(writeBolt(tree, { pageSize }))).toEqual({ tree, damage: [] });
  });

  test("is read only as far as requested", () => {
    const bytes = writeBolt({ v1: { a: { x: "1", y: "2" }, b: { x: "3" } }, v2: { a: { x: "4" } } });
    const { root } = readBolt(
      bytesAsSource(bytes),
      ([version, bucket, key]) => [version ?? "v1", bucket ?? "a", key ?? "x"].join("/") === "v1/a/x",
    );
    expect(treeOf(root)).toEqual({ v1: { a: { x: "1" } } });
  });
});

describe("meta pages", () => {
  const old = writeBolt({ is: "old" }, { transaction: 4n });
  const fresh = writeBolt({ is: "fresh" }, { transaction: 5n });

  /** One file with the two meta pages of transactions 4 and 5; only their trees differ. */
  function twoTransactions(): Buffer {
    const pages = (old.length - 3 * PAGE) / PAGE;
    const moved = Buffer.from(fresh.subarray(3 * PAGE));
    moved.writeBigUInt64LE(BigInt(3 + pages), 0);
    const both = Buffer.concat([old, moved]);
    const highWater = both.length / PAGE;
    metaBytes({ pageSize: PAGE, root: 3, highWater, transaction: 4n }).copy(both, 16);
    metaBytes({ pageSize: PAGE, root: 3 + pages, highWater, transaction: 5n }).copy(both, PAGE + 16);
    return both;
  }

  test("the newer transaction counts", () => {
    expect(read(twoTransactions()).tree).toEqual({ is: "fresh" });
  });

  test.each([
    ["the newer", PAGE, "old"],
    ["the older", 0, "fresh"],
  ])("%s torn in a power cut leaves the other, without damage", (_, offset, is) => {
    const bytes = twoTransactions();
    bytes.fill(0xff, offset + 40, offset + 60);
    expect(read(bytes)).toEqual({ tree: { is }, damage: [] });
  });

  test.each([1024, 4096, 65_536])("finds the second without the first, with pages of %d bytes", (pageSize) => {
    const bytes = writeBolt({ a: "1" }, { pageSize });
    bytes.fill(0, 0, pageSize);
    expect(read(bytes)).toEqual({ tree: { a: "1" }, damage: [] });
  });

  test.each<readonly [string, (bytes: Buffer) => void, RegExp]>([
    ["no magic number", (bytes) => bytes.writeUInt32LE(1, 16), /page 0 is no meta page/],
    ["another version", (bytes) => bytes.writeUInt32LE(3, 20), /page 0 is of format version 3/],
    ["a wrong checksum", (bytes) => bytes.writeUInt32LE(3, 64), /page 0 has a wrong checksum/],
    [
      "an absurd page size",
      (bytes) => metaBytes({ pageSize: 77, root: 3, highWater: 4, transaction: 1n }).copy(bytes, 16),
      /page 0 gives 77 bytes/,
    ],
  ])("reports both as bad, the first with %s", (_, breakFirst, expected) => {
    const bytes = writeBolt({ a: "1" });
    breakFirst(bytes);
    bytes.fill(0, PAGE, 2 * PAGE);
    const { tree, damage } = read(bytes);
    expect(tree).toEqual({});
    expect(damage).toHaveLength(2);
    expect(damage[0]).toMatch(expected);
    expect(damage[1]).toMatch(/page 1 is nowhere to be found/);
  });
});

describe("a damaged file", () => {
  /** Page 3 is the leaf of the bucket `many`'s first keys, and so on; the root is last. */
  const tree = { many: numbered(1000, (index) => `value ${index}`.repeat(5)) };
  const sound = writeBolt(tree, { free: 1 });
  const lastPage = sound.length / PAGE - 2;
  const branch = lastPage - 1;
  const element = (page: number, index: number): number => page * PAGE + 16 + index * 16;

  test("is valid before it is damaged", () => {
    expect(read(sound).damage).toEqual([]);
    expect(sound.readUInt16LE(branch * PAGE + 8)).toBe(1);
  });

  test.each<readonly [string, (bytes: Buffer) => Buffer | number, RegExp]>([
    ["a page with another page's id", (bytes) => bytes.writeUInt32LE(9, 5 * PAGE), /page 5 calls itself page 9/],
    ["a page of an unknown kind", (bytes) => bytes.writeUInt16LE(0x40, 5 * PAGE + 8), /page 5 is of kind unknown/],
    ["a page of the wrong kind", (bytes) => bytes.writeUInt16LE(0x10, 5 * PAGE + 8), /page 5 is of kind freelist/],
    ["a branch that points to itself", (bytes) => bytes.writeUInt32LE(branch, element(branch, 2) + 8), /two places/],
    ["two branches to one page", (bytes) => bytes.writeUInt32LE(3, element(branch, 2) + 8), /page 3 is .* two places/],
    [
      "a branch to a page that does not exist",
      (bytes) => bytes.writeUInt32LE(1, element(branch, 2) + 12),
      /outside of the file/,
    ],
    ["a branch to a meta page", (bytes) => bytes.writeUInt32LE(0, element(branch, 2) + 8), /page 0 .*outside/],
    ["a branch without children", (bytes) => bytes.writeUInt16LE(0, branch * PAGE + 10), /branch without a leaf/],
    ["more elements than fit", (bytes) => bytes.writeUInt16LE(60_000, 5 * PAGE + 10), /page 5 claims 60000 elements/],
    ["an endless overflow", (bytes) => bytes.writeUInt32LE(0xffffffff, 5 * PAGE + 12), /page 5 claims to go on/],
    ["an overflow into another page", (bytes) => bytes.writeUInt32LE(1, 5 * PAGE + 12), /page (5|6) .*(elsewhere|two)/],
    ["an element out of the page", (bytes) => bytes.writeUInt32LE(0xfffffff0, element(5, 1) + 4), /element 1 of/],
    ["an overlapping element", (bytes) => bytes.writeUInt32LE(16, element(5, 1) + 4), /element 1 of/],
    ["an element without end", (bytes) => bytes.writeUInt32LE(0xffffffff, element(5, 1) + 12), /element 1 of/],
    [
      "a key that is out of order",
      (bytes) => bytes.fill(0xff, bytes.indexOf("key-", 5 * PAGE), bytes.indexOf("key-", 5 * PAGE) + 3),
      /out of order/,
    ],
    ["a page both used and free", (bytes) => bytes.writeUInt32LE(5, 2 * PAGE + 16), /page 5 is in use and also listed/],
    ["a free page outside", (bytes) => bytes.writeUInt32LE(99_999, 2 * PAGE + 16), /lists page 99999 as free/],
    ["an endless freelist", (bytes) => bytes.writeUInt16LE(60_000, 2 * PAGE + 10), /claims 60000 free pages/],
    ["a freelist of another kind", (bytes) => bytes.writeUInt16LE(2, 2 * PAGE + 8), /page 2 is of kind leaf/],
    ["a truncated end", (bytes) => bytes.subarray(0, 6 * PAGE), /the file ends after 24576/],
  ])("with %s is read as far as possible", (_, damageIt, expected) => {
    const copy = Buffer.from(sound);
    const cut = damageIt(copy);
    const { damage } = read(typeof cut === "number" ? copy : cut);
    expect(damage.join("\n")).toMatch(expected);
  });

  test("returns the records outside its bad page", () => {
    const copy = Buffer.from(sound);
    copy.fill(0, 5 * PAGE, 6 * PAGE);
    const { tree: left, damage } = read(copy);
    expect(damage).toHaveLength(1);
    const kept = Object.keys(left["many"] ?? {}).length;
    expect(kept).toBeGreaterThan(900);
    expect(kept).toBeLessThan(1000);
  });

  test("with a bucket in an inline bucket is reported", () => {
    const bytes = writeBolt({ outer: { inner: "a value of at least sixteen bytes" } });
    const value = bytes.indexOf("outer") + "outer".length;
    bytes.writeUInt32LE(1, value + 32);
    expect(read(bytes).damage).toEqual([expect.stringContaining("which bbolt never writes")]);
  });

  test("with excessive nesting is not followed forever", () => {
    let deep: Tree = { end: "x".repeat(2000) };
    for (let level = 0; level < 200; level += 1) deep = { down: deep, fill: "x".repeat(2000) };
    expect(read(writeBolt(deep)).damage).toEqual([expect.stringContaining("more than 64 levels deep")]);
  });
});
